"""Events of `/v1/completions` as different engines write them."""

import math

import pytest

from engine.host.upstream.channel import UpstreamError
from engine.host.upstream.wire import read_delta
from engine.request import TokenText
from tests.support.fake_upstream import data


def delta(content):
    return read_delta(data(content).removeprefix(b"data: "), "the upstream http://there")


def choice(text, log_probs=None, reason=None):
    return {"choices": [{"text": text, "logprobs": log_probs, "finish_reason": reason}]}


def test_lists_of_tokens_and_of_numbers_are_openais_form():
    told = delta(choice(" a b", {"tokens": [" a", " b"], "token_logprobs": [-0.5, None]}))
    assert told.tokens == (TokenText(" a", -0.5), TokenText(" b", -math.inf))
    assert (told.num_tokens, told.has_log_probs, told.finish_reason) == (2, True, "")


def test_an_object_for_each_token_is_llama_cpps_form():
    told = delta(choice(" a", {"content": [{"id": 7, "token": " a", "logprob": -0.25}]}))
    assert told.tokens == (TokenText(" a", -0.25),)


def test_the_token_that_ended_a_text_is_no_part_of_it():
    told = delta(choice("x", {"tokens": ["x", "</s>"], "token_logprobs": [-1, -2]}, "stop"))
    assert told.tokens == (TokenText("x", -1),)
    alone = delta(choice("", {"tokens": ["</s>"], "token_logprobs": [-2]}, "stop"))
    assert alone.tokens == ()


def test_tokens_that_are_not_the_text_are_one_piece_with_the_probability_of_all():
    told = delta(choice("é", {"tokens": ["\ufffd", "\ufffd"], "token_logprobs": [-1, -2]}))
    assert told.tokens == (TokenText("é", -3),)
    held = delta(choice("", {"tokens": ["\ufffd"], "token_logprobs": [-1]}))
    assert held.tokens == (TokenText("", -1),)


def test_text_without_probabilities_is_one_sure_piece():
    told = delta(choice("a b"))
    assert (told.tokens, told.has_log_probs, told.num_tokens) == (
        (TokenText("a b", 0),),
        False,
        1,
    )


@pytest.mark.parametrize("content", [[], "x", {"choices": 7}, {"choices": [{"logprobs": "x"}]}])
def test_what_is_no_event_is_a_broken_upstream(content):
    with pytest.raises(UpstreamError, match="http://there sent what is no completion"):
        delta(content)


@pytest.mark.parametrize("error", ["no memory", {"message": "no memory", "code": 500}])
def test_an_error_in_the_stream_is_a_sentence(error):
    with pytest.raises(
        UpstreamError,
        match=r"^the upstream http://there failed in the middle of an answer: no memory$",
    ):
        delta({"error": error})
