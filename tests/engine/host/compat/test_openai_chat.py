"""OpenAI's chat over a real socket: whole, in a stream, refused."""

import json
from typing import Any

import pytest

from engine.errors import NoChatTemplateError, PromptTooLongError
from engine.request import ChatMessage, Chunk, FinishReason, TokenText
from tests.support.held_engine import HeldEngine
from tests.support.running_host import running_host

CHAT = "/v1/chat/completions"
TALK: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]},
]
TOLD = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hello"))


class NoChatEngine(HeldEngine):
    """Its model has no chat template."""

    def sequence(self, request, **how):
        raise NoChatTemplateError("the model has no chat template")


class SmallEngine(HeldEngine):
    """Its context has no room for the messages."""

    def sequence(self, request, **how):
        raise PromptTooLongError("the prompt has 9 tokens")


async def asked(tmp_path, engine=None, **fields):
    async with running_host(tmp_path, engine or HeldEngine()) as host:
        return await host.client.post(CHAT, json={"model": "any", "messages": TALK} | fields)


def events(response):
    *told, done = [one.removeprefix("data: ") for one in response.text.split("\n\n") if one]
    assert done == "[DONE]"
    return [json.loads(one) for one in told]


class TokensEngine(HeldEngine):
    """Lists a token for each word."""

    def completing(self, request, *, on_chunk, cancelled):
        def with_tokens(chunk):
            on_chunk(Chunk(chunk.text, (TokenText(chunk.text, -0.5),)))

        return super().completing(request, on_chunk=with_tokens, cancelled=cancelled)


async def test_an_answer_is_a_message_with_every_field_that_a_strict_client_reads(tmp_path):
    engine = HeldEngine()
    response = await asked(tmp_path, engine)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["id"].startswith("chatcmpl-")
    assert (answer["object"], answer["model"]) == ("chat.completion", "fake-1b")
    (choice,) = answer["choices"]
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": "one two three", "refusal": None},
        "logprobs": None,
        "finish_reason": "stop",
    }
    assert answer["usage"] == {
        "prompt_tokens": 100,
        "completion_tokens": 3,
        "total_tokens": 103,
        "prompt_tokens_details": {"cached_tokens": 90},
    }
    (request,) = engine.requests
    assert request.messages == TOLD
    assert (request.prefix, request.copied) == ("", "")
    assert (request.sampling.temperature, request.stop.max_tokens) == (0, 1024)
    assert not request.stop.indentation


async def test_a_stream_begins_with_the_role_and_ends_with_reason_and_usage(tmp_path):
    engine = HeldEngine(ending=FinishReason.MAX_TOKENS)
    response = await asked(tmp_path, engine, stream=True, stream_options={"include_usage": True})
    first, *told, ended, tokens = events(response)
    assert {one["object"] for one in (first, *told, ended)} == {"chat.completion.chunk"}
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(one["choices"][0]["delta"]["content"] for one in told) == "one two three"
    assert (ended["choices"][0]["delta"], ended["choices"][0]["finish_reason"]) == ({}, "length")
    assert (tokens["choices"], tokens["usage"]["total_tokens"]) == ([], 103)


async def test_an_empty_answer_has_a_role_as_well(tmp_path):
    first, ended = events(await asked(tmp_path, HeldEngine(words=()), stream=True))
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert ended["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_log_probabilities_come_in_the_form_of_a_chat(tmp_path, is_streamed):
    response = await asked(
        tmp_path, TokensEngine(), logprobs=True, top_logprobs=1, stream=is_streamed
    )
    answers = events(response) if is_streamed else [response.json()]
    told = [one["choices"][0]["logprobs"] for one in answers]
    content = [token for one in told if one for token in one["content"]]
    own = {"token": "two ", "logprob": -0.5, "bytes": list(b"two ")}
    assert content[1] == own | {"top_logprobs": [own]}
    assert len(content) == 3


async def test_the_request_is_as_the_fields_say(tmp_path):
    engine = HeldEngine()
    await asked(
        tmp_path,
        engine,
        max_tokens=7,
        max_completion_tokens=5,
        temperature=0.7,
        seed=3,
        stop="\n\n",
        prediction={"type": "content", "content": [{"type": "text", "text": "x = 1\n"}]},
    )
    (request,) = engine.requests
    assert (request.stop.max_tokens, request.stop.strings) == (5, ("\n\n",))
    assert (request.sampling.temperature, request.sampling.seed) == (0.7, 3)
    assert request.copied == "x = 1\n"


async def test_a_prediction_is_read_no_farther_than_an_answer_can_be(tmp_path):
    """It is tokenized while everybody waits."""
    engine = HeldEngine()
    long = {"type": "content", "content": "x = 1\n" * 1_000_000}
    await asked(tmp_path, engine, max_tokens=10_000, prediction=long)
    (request,) = engine.requests
    assert len(request.copied) < 40_000


async def test_turns_of_a_conversation_share_a_cached_prompt_and_other_conversations_do_not(
    tmp_path,
):
    engine = HeldEngine()
    later = [*TALK, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Well?"}]
    other = [TALK[0], {"role": "user", "content": "Bye"}]
    async with running_host(tmp_path, engine) as host:
        for messages in (TALK, later, other):
            await host.client.post(CHAT, json={"messages": messages})
    first, second, third = (one.cache_key for one in engine.requests)
    assert first == second != third


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"messages": []}, "messages is empty"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "send a user's"),
        ({"messages": "Hello"}, "messages"),
        ({"messages": [{"role": "user", "content": "x"}] * 5000}, "messages"),
        ({"messages": [{"role": "user", "content": [{}] * 5000}]}, "messages[0] has more than"),
        ({"messages": [{"role": "tool", "content": "4"}]}, r"messages[0] has none of the roles"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0] holds"),
        ({"messages": [{"role": "user", "content": 4}]}, "messages[0] holds"),
        ({"messages": [{"role": "user", "content": False}]}, "messages[0] holds"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0] has tool_calls"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"functions": [{}]}, "functions"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"n": 2}, "n "),
        ({"logit_bias": {"1": 1}}, "logit_bias"),
        ({"grammar": 'root ::= "x"'}, "grammar"),
        ({"json_schema": {}}, "json_schema"),
        ({"ignore_eos": True}, "ignore_eos"),
        ({"logprobs": True, "top_logprobs": 5}, "top_logprobs"),
        ({"presence_penalty": 1}, "presence_penalty"),
        ({"temperature": 1, "top_p": 0.9}, "top_p"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"prediction": {"type": "content", "content": 4}}, "prediction"),
        ({"max_tokens": -3}, "max_tokens"),
    ],
)
async def test_what_would_change_the_answer_is_refused_by_name(tmp_path, given, named):
    response = await asked(tmp_path, **given)
    assert response.status_code == 400
    assert named in response.json()["error"]["message"]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_messages_above_the_context_have_the_code_that_clients_look_for(
    tmp_path, is_streamed
):
    response = await asked(tmp_path, SmallEngine(), stream=is_streamed)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_model_without_a_template_is_told_before_a_stream_begins(tmp_path, is_streamed):
    response = await asked(tmp_path, NoChatEngine(), stream=is_streamed)
    assert response.status_code == 501
    assert response.json()["error"]["code"] == "no_chat_template"


@pytest.mark.parametrize(
    "given",
    [
        {"tools": [], "tool_choice": "auto", "n": 1, "response_format": {"type": "text"}},
        {"max_tokens": None, "stop": None, "user": "ada", "store": False, "logprobs": False},
        {"max_tokens": -1, "parallel_tool_calls": True, "reasoning_effort": "low"},
        {"grammar": "", "json_schema": None, "mirostat": 0, "n_probs": 0, "ignore_eos": False},
        {"messages": [{"role": "system", "content": "Greet."}]},
    ],
)
async def test_what_clients_send_by_default_is_taken(tmp_path, given):
    assert (await asked(tmp_path, **given)).status_code == 200
