"""An upstream engine against a server that says what a test has it say."""

import logging
import re
import threading
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from engine.config import Sampling, StopRules
from engine.errors import ConfigurationError, InputError
from engine.host.upstream import channel as channel_module
from engine.host.upstream.channel import UpstreamError
from engine.host.upstream.options import UpstreamOptions
from engine.host.upstream.upstream_engine import UpstreamEngine
from engine.progress import Progress
from engine.request import Buffer, CompletionRequest, FinishReason, Snippet
from tests.support.fake_upstream import FakeUpstream, data, event, fake_upstream, said
from tests.support.jobs import UNHEARD

PREFIX = "def total(items):\n    result = 0\n    for item in items:\n        result += "
SUFFIX = "\n    return result\n"
REQUEST = CompletionRequest(PREFIX, SUFFIX, "shop.py", stop=StopRules(max_tokens=32))


@contextmanager
def engine_of(upstream: FakeUpstream, **options: Any):
    """An engine that has asked who is there."""
    given = UpstreamOptions(upstream.url, **options)
    with closing(UpstreamEngine.load(given, Progress())) as engine:
        yield engine


@contextmanager
def serving(**options: Any):
    """A fake upstream, and an engine of it."""
    with fake_upstream(**options) as upstream, engine_of(upstream) as engine:
        yield upstream, engine


@contextmanager
def fails(code, words=None):
    """The block fails with this code, and in these words."""
    with pytest.raises(UpstreamError, match=words) as failed:
        yield failed
    assert failed.value.code == code


def completed(engine, request=REQUEST, *, is_cancelled=lambda: False):
    """What becomes of a request, and the chunks that were told before."""
    chunks: list[str] = []
    ends: list[Any] = []
    sequence = engine.sequence(
        request,
        on_chunk=lambda chunk: chunks.append(chunk.text),
        is_cancelled=is_cancelled,
        on_end=ends.append,
    )
    engine.run(lambda: [] if sequence.is_done else [sequence])
    assert ends == [sequence]
    return sequence.result(), chunks


def written(steps, request=REQUEST):
    """What becomes of a request that an upstream answers so."""
    with serving(answer=lambda _: steps) as (_, engine):
        return completed(engine, request)[0]


def test_text_streams_and_is_counted():
    with serving(answer=lambda _: said(" item", ".price")) as (upstream, engine):
        result, chunks = completed(engine)
        assert engine.info.device == "vLLM"  # status tells no address
        assert upstream.url not in str(engine.info)
    assert (result.text, result.finish_reason) == (" item.price".lstrip(), FinishReason.END_TOKEN)
    assert "".join(chunks) == result.text
    assert (result.cost.prompt_tokens, result.cost.reused_tokens) == (77, 70)


def test_a_prompt_is_the_models_own_with_other_files_before_it():
    request = CompletionRequest(
        PREFIX,
        SUFFIX,
        "shop.py",
        open_buffers=(Buffer("orders.py", "class Item:\n    price: int\n    items: list\n"),),
        repository=(Snippet("db.py", "items = []\n"),),
        sampling=Sampling(0.4, seed=2**40 + 7),
        stop=StopRules(max_tokens=9),
    )
    with serving() as (upstream, engine):
        result, _ = completed(engine, request)
    prompt = upstream.asked.pop("prompt")
    assert prompt.startswith("<|repo_name|>repository\n<|file_sep|>orders.py\n")
    assert "<|file_sep|>db.py\nitems = []\n<|file_sep|>shop.py\n<|fim_prefix|>" in prompt
    assert f"<|fim_suffix|>{SUFFIX}<|fim_middle|>" in prompt
    assert upstream.asked == {
        "model": "Qwen/Qwen2.5-Coder-7B",
        "stream": True,
        "max_tokens": 9,
        "temperature": 0.4,
        "top_p": 1.0,
        "seed": 7,
        "logprobs": 1,
        "stream_options": {"include_usage": True},
        "repetition_penalty": 1.0,
        "skip_special_tokens": False,
        "top_k": -1,
        "min_p": 0.0,
        "spaces_between_special_tokens": False,
    }
    assert (result.cost.neighbours, result.cost.repository) == (("orders.py",), ("db.py",))


def test_an_upstream_that_would_write_the_same_again_is_not_asked():
    request = replace(REQUEST, sampling=Sampling(avoids_suffix=True))
    with serving(answer=lambda _: said(" x")) as (upstream, engine):
        assert completed(engine, request)[0].is_repeat
        assert upstream.bodies == []
        drawn = replace(request, sampling=Sampling(0.8, avoids_suffix=True))
        assert completed(engine, drawn)[0].text


def test_what_one_principal_has_written_speeds_up_no_other():
    """vLLM looks a prompt's beginning up among those with the same salt."""
    principals = ("", "ada", "ada", "bob")
    with serving(answer=lambda _: said(" x")) as (upstream, engine):
        for one in principals:
            result, _ = completed(engine, replace(REQUEST, principal=one))
            assert result.cost.reused_tokens == (0 if one else 70)
    nobody, ada, again, bob = (body.get("cache_salt") for body in upstream.bodies)
    assert nobody is None
    assert ada == again != bob
    assert "ada" not in ada


def test_the_users_own_words_are_never_special_tokens():
    request = CompletionRequest('MIDDLE = "<|fim_middle|>"\nx = ', '\ny = "<|fim_pad|>"\n')
    with serving(answer=lambda _: said(' "<|fim_pad|>', '"')) as (upstream, engine):
        result, _ = completed(engine, request)
    assert upstream.asked["prompt"].count("<|fim_middle|>") == 1
    assert "< |fim_middle|>" in upstream.asked["prompt"]
    assert result.text == '"<|fim_pad|>"'  # the document speaks of it, so it is text


def test_a_special_token_ends_the_text():
    for words in ((" 1", "<|fim_pad|>", " junk"), (" 1<|fim_pad|>junk",)):
        result = written(said(*words))
        assert (result.text, result.finish_reason) == ("1", FinishReason.FIM_TOKEN)


def test_our_rules_end_it_and_the_upstream_hears_of_it_at_once():
    never = threading.Event()
    words = [" item", "\n", "    return", " result", "\n", "\n", "def"]
    steps = [*map(event, words), never]
    with serving(answer=lambda _: steps) as (upstream, engine):
        result, _ = completed(engine)
        assert upstream.gone.acquire(timeout=20)
    assert (result.text, result.finish_reason) == ("item", FinishReason.SUFFIX)


def test_a_text_that_gets_unlikely_ends_before_that_word():
    request = CompletionRequest(PREFIX, SUFFIX, stop=StopRules(min_confidence=0.5))
    steps = [event(" item", -0.1), event(".price", -0.2), event(" +", -2.0), threading.Event()]
    with serving(answer=lambda _: steps) as (upstream, engine):
        result, _ = completed(engine, request)
        assert upstream.gone.acquire(timeout=20)
    assert (result.text, result.finish_reason) == ("item.price", FinishReason.UNSURE)


def test_without_probabilities_nothing_is_held_back():
    request = CompletionRequest(PREFIX, SUFFIX, stop=StopRules(min_confidence=0.9))
    steps = [event(" item", None), event(finish="stop")]
    result = written(steps, request)
    assert (result.text, result.log_probs) == ("item", ())


def test_a_prompt_is_read_ahead_and_nothing_of_the_answer_told():
    with serving() as (upstream, engine):
        result, chunks = completed(engine, replace(REQUEST, stop=StopRules(max_tokens=0)))
    assert (result.text, chunks, upstream.bodies) == ("", [], [])


def test_many_go_on_side_by_side():
    everyone = threading.Event()
    with serving(answer=lambda _: [everyone, *said(" item")]) as (upstream, engine):
        sequences = [engine.sequence(REQUEST, **UNHEARD) for _ in range(40)]

        def release():
            for _ in range(40):
                upstream.began.acquire()
            everyone.set()

        threading.Thread(target=release).start()
        engine.run(lambda: [one for one in sequences if not one.is_done])
    assert [one.result().text for one in sequences] == ["item"] * 40


def test_a_connection_is_used_again():
    with serving(answer=lambda _: said(" x")) as (upstream, engine):
        for _ in range(5):
            completed(engine)
    assert len(upstream.connections) == 1


def test_a_kept_connection_that_was_closed_meanwhile_costs_nobody_anything():
    with serving() as (upstream, engine):
        upstream.num_dropped = 1
        assert completed(engine)[0].text == "x"
        upstream.num_dropped = 2
        with fails("upstream_broken", "broke off"):
            completed(engine)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_parts_may_end_anywhere(size):
    whole = b"".join([b": hello\r\n\r\n", *said(" größe", "🙂日本", "\u2028x")])
    parts = [whole[start : start + size] for start in range(0, len(whole), size)]
    assert written(parts).text == "größe🙂日本\u2028x"


def test_empty_deltas_are_no_tokens():
    steps = [event(), event(" item"), event(), data({"choices": []}), event(finish="length")]
    result = written(steps)
    assert (result.text, result.cost.tokens) == ("item", 1)
    assert result.finish_reason is FinishReason.MAX_TOKENS


@pytest.mark.parametrize(
    "steps", [[event(" item", finish="stop")], [event(" item"), b"data: [DONE]\n\n"]]
)
def test_a_reason_or_a_mark_alone_is_an_end(steps):
    assert written(steps).text == "item"


@pytest.mark.parametrize(
    ("steps", "code", "words"),
    [
        ([event(" item")], "upstream_broken", "stopped in the middle"),
        ([event(" item"), b""], "upstream_broken", "broke off"),
        ([b"data: {]\n\n"], "upstream_broken", "sent what is no completion"),
        ([b'error: {"message": "lost its GPU"}\n\n'], "upstream_failed", "answer: lost its GPU"),
        (
            [b"data: " + b"x" * 2**21 + b"\n\n"],
            "upstream_broken",
            "a line of more than 1,048,576",
        ),
    ],
)
def test_a_stream_that_breaks_is_a_sentence(steps, code, words):
    with fails(code, words):
        written(steps)


@pytest.mark.parametrize(
    ("status", "content", "code", "words"),
    [
        (401, {"error": "no key"}, "upstream_denied", r"does not accept the token \(401: no key"),
        (404, {"detail": "Not Found"}, "upstream_not_found", "no such model or no /v1/completions"),
        (400, {"message": "bad"}, "upstream_refused", r"refused \(400\): bad"),
        (500, b"<html>", "upstream_failed", r"failed \(500\)"),
        (
            503,
            {"error": {"message": "Loading"}},
            "upstream_unreachable",
            r"not ready \(503: Load",
        ),
    ],
)
def test_a_refusal_is_a_sentence_and_the_next_one_is_served(status, content, code, words):
    with serving() as (upstream, engine):
        upstream.refuse("/v1/completions", status, content)
        with fails(code, words):
            completed(engine)
        upstream.refusals.clear()
        assert completed(engine)[0].text == "x"


def test_a_busy_upstream_is_left_alone_for_as_long_as_it_says():
    with serving() as (upstream, engine):
        upstream.refuse("/v1/completions", 429, {"error": "slow down"}, retry_after="7")
        with fails("upstream_busy", "busy; it can be asked again in 7 s") as busy:
            completed(engine)
        assert busy.value.retry_after_s == 7
        with fails("upstream_busy", r"in [67] s"):
            completed(engine)
        assert len(upstream.bodies) == 1


def test_an_upstream_that_falls_silent_is_a_sentence(monkeypatch):
    monkeypatch.setattr(channel_module, "_SILENT_S", 0.2)
    steps = [event(" item"), threading.Event()]
    with fails("upstream_timeout", "has said nothing for"):
        written(steps)


def test_an_upstream_that_is_gone_is_a_sentence():
    with ExitStack() as alive:
        upstream = alive.enter_context(fake_upstream())
        with engine_of(upstream) as engine:
            alive.close()
            with fails("upstream_unreachable", "cannot be reached"):
                completed(engine)


def test_fields_that_a_gateway_refuses_are_left_out_from_then_on():
    refused = ("min_p", "stream_options", "logprobs")
    with serving(unknown=refused, answer=lambda _: said(" x")) as (upstream, engine):
        for _ in range(2):
            assert completed(engine)[0].text == "x"
    assert len(upstream.bodies) == 2
    assert not set(upstream.asked) & set(refused)


def test_the_token_goes_in_a_header_and_into_no_log(caplog):
    caplog.set_level(logging.DEBUG)
    with (
        fake_upstream() as upstream,
        engine_of(upstream, token="a-secret-word") as engine,
    ):
        completed(engine)
        upstream.refuse("/v1/completions", 401, {"error": "who are you"})
        with fails("upstream_denied") as denied:
            completed(engine)
        assert "a-secret-word" not in repr(engine._model)
    assert {one["authorization"] for one in upstream.headers} == {"Bearer a-secret-word"}
    assert "a-secret-word" not in caplog.text + str(denied.value)


def test_a_certificate_has_to_be_trusted(certificate):
    cert, key = certificate
    with fake_upstream(certificate=certificate) as upstream:
        with fails("upstream_untrusted", "not accepted: self-signed certificate; "):
            UpstreamEngine.load(UpstreamOptions(upstream.url), Progress())
        with engine_of(upstream, ca_file=cert) as engine:
            assert completed(engine)[0].text == "x"
        with pytest.raises(ConfigurationError, match=r"--upstream-ca-file .* cannot be used"):
            UpstreamEngine.load(UpstreamOptions(upstream.url, ca_file=key), Progress())


def test_what_an_upstream_claims_of_its_size_is_bounded():
    """Each slot is a line of `/slots`."""
    claims = {"total_slots": 2_000_000, "default_generation_settings": {"n_ctx": 10**12}}
    with (
        fake_upstream(owner="llamacpp", routes={"/props": claims}) as upstream,
        engine_of(upstream) as engine,
    ):
        assert engine.max_sequences == 1024
        assert engine.info.context_len == 2**24


def test_several_models_are_named_and_one_has_to_be_chosen():
    names = ("Qwen/Qwen2.5-Coder-7B", "starcoder2-3b")
    load = partial(UpstreamEngine.load, progress=Progress())
    with fake_upstream(names=names) as upstream:
        with pytest.raises(ConfigurationError, match="7B, starcoder2-3b; name one with --upstream"):
            load(UpstreamOptions(upstream.url))
        with pytest.raises(ConfigurationError, match="has no model gpt, but Qwen") as refused:
            load(UpstreamOptions(upstream.url, "gpt"))
        assert upstream.url not in refused.value.told
        with closing(load(UpstreamOptions(upstream.url, names[1]))) as engine:
            completed(engine)
    assert upstream.asked["prompt"].startswith("<fim_prefix>")


CUT = CompletionRequest("def f(self):\n    return sel", "\n")  # within a word


@pytest.mark.parametrize(
    "words", [(" other",), (" se", "x"), ("sel",), (" s", "x"), (" se",), (" se<|fim_pad|>",)]
)
def test_an_answer_that_does_not_begin_as_it_should_is_asked_for_again(words):
    """Without a grammar nothing makes it repeat the piece at the cursor, which the prompt lacks."""

    def answer(body):
        is_first = body["prompt"].endswith("return")
        return said(*words) if is_first else said("f", ".x")

    with serving(answer=answer) as (upstream, engine):
        result, chunks = completed(engine, CUT)
    assert (result.text, "".join(chunks)) == ("f.x", "f.x")
    assert upstream.asked["prompt"].endswith("return sel<|fim_suffix|>\n<|fim_middle|>")


@pytest.mark.parametrize(
    "words", [(" self", ".x"), (" sel", "f.x"), (" ", "s", "e", "l", "f", ".x"), (" self.x",)]
)
def test_an_answer_that_repeats_the_piece_at_the_cursor_is_shown_without_it(words):
    with serving(answer=lambda _: said(*words)) as (upstream, engine):
        result, chunks = completed(engine, CUT)
    assert (result.text, "".join(chunks), len(upstream.bodies)) == ("f.x", "f.x", 1)
    assert len(result.log_probs) == len(words)


def test_a_missed_answer_ends_before_the_next_one_and_leaves_no_counts():
    usage = {"prompt_tokens": 77, "prompt_tokens_details": {"cached_tokens": 70}}
    has_ended = []

    def answer(body):
        if body["prompt"].endswith("return"):
            return [data({"choices": [], "usage": usage}), event(" other"), threading.Event()]
        has_ended.append(upstream.gone.acquire(timeout=20))
        return [event("f.x", None), event(finish="stop"), b"data: [DONE]\n\n"]

    with serving(answer=answer) as (upstream, engine):
        result, _ = completed(engine, CUT)
    assert (result.text, result.log_probs, has_ended) == ("f.x", (), [True])
    assert (result.cost.prompt_tokens < 77, result.cost.reused_tokens) == (True, 0)


def test_what_nothing_tells_has_to_be_said():
    with fake_upstream(names=("my-model",)) as upstream:
        with pytest.raises(ConfigurationError, match="my-model fills in the middle; pass --model"):
            UpstreamEngine.load(UpstreamOptions(upstream.url), Progress())
        with engine_of(upstream, known_as="7b") as engine:
            completed(engine)
    assert upstream.asked["model"] == "my-model"
    assert "<|fim_prefix|>" in upstream.asked["prompt"]


def tokenised(body):
    """What a model with three special tokens makes of names."""
    ids = {"<fim_prefix>": [1], "<fim_suffix>": [3], "<fim_middle>": [2]}
    found = re.findall("<[^<>]*>", body["prompt"])
    return {"tokens": [one for name in found for one in ids.get(name, [7, 8])]}


@pytest.mark.parametrize("name", ["my-model", "Qwen/CodeQwen1.5-7B"])
def test_an_upstream_that_tells_its_tokens_needs_no_known_name(name):
    with (
        fake_upstream(names=(name,), routes={"/tokenize": tokenised}) as upstream,
        engine_of(upstream) as engine,
    ):
        completed(engine)
    assert upstream.asked["prompt"].startswith("<fim_prefix>")


def test_tokens_that_are_told_in_another_form_tell_nothing():
    told = {"tokens": [{"id": 1}]}
    with (
        fake_upstream(names=("my-model",), routes={"/tokenize": lambda _: told}) as upstream,
        engine_of(upstream, known_as="7b") as engine,
    ):
        completed(engine)
    assert "<|fim_prefix|>" in upstream.asked["prompt"]


def test_a_known_model_with_other_tokens_than_the_upstreams_is_refused():
    with (
        fake_upstream(names=("my-model",), routes={"/tokenize": tokenised}) as upstream,
        pytest.raises(ConfigurationError, match="my-model has other tokens than 7b; pass --model"),
    ):
        UpstreamEngine.load(UpstreamOptions(upstream.url, known_as="7b"), Progress())


RAW = f"<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>"
RAW_REQUEST = CompletionRequest(
    RAW, "", is_raw=True, tells_tokens=True, stop=StopRules.verbatim(32, ("END",))
)


def test_a_prompt_that_a_client_laid_out_goes_on_as_it_is():
    words = (" item", " <|fim_pad|>")
    with serving(answer=lambda _: said(*words)) as (upstream, engine):
        result, _ = completed(engine, RAW_REQUEST)
    assert upstream.asked["prompt"] == RAW
    assert (result.text, result.finish_reason) == (" item ", FinishReason.FIM_TOKEN)


def test_a_stop_string_of_the_caller_ends_a_text_of_an_upstream_too():
    with serving(answer=lambda _: said("a = 1\n", "E", "ND", "b")) as (_, engine):
        result, chunks = completed(engine, RAW_REQUEST)
    assert (result.text, result.finish_reason) == ("a = 1\n", FinishReason.STOP_STRING)
    assert "".join(chunks) == result.text


def test_a_clients_prompt_beyond_the_upstreams_context_is_refused():
    request = CompletionRequest("x = 1\n" * 20_000, "", is_raw=True)
    with serving() as (_, engine), pytest.raises(InputError, match="8,191"):
        completed(engine, request)


def test_log_probabilities_that_an_upstream_does_not_tell_are_refused():
    with serving() as (_, engine):
        engine._model.tells_probabilities = False
        with pytest.raises(InputError, match="logprobs"):
            completed(engine, RAW_REQUEST)
