"""OpenAI's and Mistral's completions over a real socket: whole, in a stream, refused."""

import json
from typing import Any

import pytest

from engine.request import FinishReason
from tests.support.held_engine import HeldEngine
from tests.support.running_host import running_host

COMPLETIONS = "/v1/completions"
FIM = "/v1/fim/completions"
# What Continue, minuet and Zed send of their own accord.
CONTINUE: dict[str, Any] = {
    "model": "codestral-latest",
    "prompt": "x = ",
    "suffix": "\n",
    "max_tokens": 4096,
    "temperature": 0.01,
    "stop": ["[PREFIX]", "[SUFFIX]", "/src/", "#- coding: utf-8", "```"],
    "stream": True,
}
MINUET = {"model": "codestral-latest", "prompt": "x = ", "suffix": "\n", "max_tokens": 256}
ZED = {
    "model": "codestral-latest",
    "prompt": "x = ",
    "suffix": "\n",
    "max_tokens": 150,
    "temperature": 0.2,
    "top_p": 1.0,
    "stream": False,
}


def events(text):
    """The data of a stream's events; its end is the last of them."""
    return [line.removeprefix("data: ") for line in text.split("\n\n") if line]


async def test_a_completion_has_every_field_that_a_strict_client_reads(tmp_path):
    """Zed shows nothing where one of them is missing."""
    engine = HeldEngine()
    async with running_host(tmp_path, engine) as host:
        body = {"model": "any", "prompt": "x = ", "suffix": "\n", "max_tokens": 64}
        response = await host.client.post(COMPLETIONS, json=body)
    assert response.status_code == 200
    answer = response.json()
    assert answer["id"].startswith("cmpl-")
    assert isinstance(answer["created"], int)
    assert (answer["object"], answer["model"]) == ("text_completion", "fake-1b")
    assert answer["choices"] == [
        {"text": "one two three", "index": 0, "logprobs": None, "finish_reason": "stop"}
    ]
    assert answer["usage"] == {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}
    (request,) = engine.requests
    assert (request.prefix, request.suffix, request.is_raw) == ("x = ", "\n", False)
    assert request.sampling.temperature == 0


async def test_a_stream_ends_with_the_reason_the_usage_and_done(tmp_path):
    engine = HeldEngine(ending=FinishReason.MAX_TOKENS)
    async with running_host(tmp_path, engine) as host:
        body = {"prompt": "x", "stream": True, "stream_options": {"include_usage": True}}
        response = await host.client.post(COMPLETIONS, json=body)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    *told, ended, usage, done = events(response.text)
    assert done == "[DONE]"
    assert "".join(json.loads(one)["choices"][0]["text"] for one in told) == "one two three"
    assert json.loads(ended)["choices"][0]["finish_reason"] == "length"
    assert json.loads(usage)["choices"] == []
    assert json.loads(usage)["usage"]["total_tokens"] == 103
    assert engine.requests[0].is_raw


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "prompt"),
        ({"prompt": "x", "echo": True}, "echo"),
        ({"prompt": "x", "n": 2}, "n "),
        ({"prompt": "x", "best_of": 3}, "best_of"),
        ({"prompt": "x", "logit_bias": {"50256": -100}}, "logit_bias"),
        ({"prompt": "x", "presence_penalty": 0.5}, "presence_penalty"),
        ({"prompt": "x", "frequency_penalty": -0.5}, "frequency_penalty"),
        ({"prompt": "x", "logprobs": 5}, "logprobs"),
        ({"prompt": "x", "temperature": 1.0, "top_p": 0.9}, "top_p"),
        ({"prompt": "x", "temperature": -1}, "temperature"),
        ({"prompt": "x", "max_tokens": "many"}, "max_tokens"),
        ({"prompt": "x", "max_tokens": -1}, "max_tokens"),
        ({"prompt": ["x", "y"]}, "prompt"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": "x", "stop": ["y"] * 80}, "stop"),
    ],
)
async def test_what_would_change_the_answer_is_refused_by_name(tmp_path, given, named):
    async with running_host(tmp_path, HeldEngine()) as host:
        response = await host.client.post(COMPLETIONS, json=given)
    assert response.status_code == 400
    error = response.json()["error"]
    assert named in error["message"]
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "given",
    [
        {"top_p": 0.9},
        {"temperature": 0.2, "top_p": 0.95},
        {"temperature": 1.0, "top_p": 1.0, "n": 1, "best_of": 1, "echo": False, "user": "ada"},
        {"presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": {}, "logprobs": None},
        {"stop": ["", "\n"], "seed": -1, "unknown": {"a": 1}, "suffix": None, "stop_token_ids": []},
    ],
)
async def test_what_clients_send_by_default_is_taken(tmp_path, given):
    async with running_host(tmp_path, HeldEngine()) as host:
        response = await host.client.post(COMPLETIONS, json={"prompt": "x"} | given)
    assert response.status_code == 200, response.text


async def test_the_model_is_listed_and_found_by_its_name(tmp_path):
    async with running_host(tmp_path, HeldEngine()) as host:
        (card,) = (await host.client.get("/v1/models")).json()["data"]
        found = await host.client.get("/v1/models/fake-1b")
        missing = await host.client.get("/v1/models/Qwen/other")
    assert (card["id"], card["object"]) == ("fake-1b", "model")
    assert card["capabilities"]["completion_fim"]
    assert found.json() == card
    assert missing.status_code == 404
    assert "fake-1b" in missing.json()["error"]["message"]


def mistral_host(folder, engine):
    return running_host(folder, engine, apis="mistral")


@pytest.mark.parametrize("body", [MINUET, ZED])
async def test_mistrals_text_comes_as_a_message_with_every_field(tmp_path, body):
    engine = HeldEngine()
    async with mistral_host(tmp_path, engine) as host:
        response = await host.client.post(FIM, json=body)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer.keys() == {"id", "object", "created", "model", "choices", "usage"}
    assert answer["choices"] == [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"content": "one two three", "role": "assistant"},
        }
    ]
    assert answer["usage"]["total_tokens"] == 103
    assert (engine.requests[0].prefix, engine.requests[0].suffix) == ("x = ", "\n")


async def test_mistrals_stream_has_a_delta_in_every_event(tmp_path):
    engine = HeldEngine(ending=FinishReason.MAX_TOKENS)
    async with mistral_host(tmp_path, engine) as host:
        response = await host.client.post(FIM, json=CONTINUE)
    *told, done = events(response.text)
    answers = [json.loads(one) for one in told]
    assert done == "[DONE]"
    assert "".join(one["choices"][0]["delta"]["content"] for one in answers) == "one two three"
    *going_on, ended = [one["choices"][0]["finish_reason"] for one in answers]
    assert (set(going_on), ended) == ({None}, "length")
    assert answers[-1]["usage"]["completion_tokens"] == 3
    assert engine.requests[0].stop.max_tokens == 1024
    assert engine.requests[0].stop.strings == tuple(CONTINUE["stop"])


async def test_mistrals_prompt_without_a_suffix_is_a_hole_at_the_files_end(tmp_path):
    engine = HeldEngine()
    async with mistral_host(tmp_path, engine) as host:
        await host.client.post(FIM, json={"prompt": "x = ", "random_seed": 7, "temperature": 1})
    assert not engine.requests[0].is_raw
    assert (engine.requests[0].sampling.temperature, engine.requests[0].sampling.seed) == (1, 7)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"suffix": "x"}, "prompt"),
        ({"prompt": "x", "min_tokens": 3}, "min_tokens"),
        ({"prompt": "x", "temperature": 0.9, "top_p": 0.5}, "top_p"),
        ({"prompt": "x", "stop": 1}, "stop"),
    ],
)
async def test_what_would_change_mistrals_answer_is_refused_by_name(tmp_path, given, named):
    async with mistral_host(tmp_path, HeldEngine()) as host:
        response = await host.client.post(FIM, json=given)
    assert response.status_code == 400
    assert response.json()["object"] == "error"
    assert named in response.json()["message"]
