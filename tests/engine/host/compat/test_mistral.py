"""Mistral's fill-in-the-middle over a real socket, as recorded of clients' sources."""

import json
from typing import Any

import pytest

from engine.host.compat.apis import EnabledApis
from engine.request import FinishReason
from tests.support.held_engine import HeldEngine
from tests.support.running_host import running_host

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


def mistral_host(folder, engine):
    return running_host(folder, engine, apis=EnabledApis.named("mistral"))


@pytest.mark.parametrize("body", [MINUET, ZED])
async def test_the_text_comes_as_a_message_with_every_field(tmp_path, body):
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


async def test_a_stream_has_a_delta_in_every_event(tmp_path):
    engine = HeldEngine(ending=FinishReason.MAX_TOKENS)
    async with mistral_host(tmp_path, engine) as host:
        response = await host.client.post(FIM, json=CONTINUE)
    *told, done = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    answers = [json.loads(one) for one in told]
    assert done == "[DONE]"
    assert "".join(one["choices"][0]["delta"]["content"] for one in answers) == "one two three"
    *going_on, ended = [one["choices"][0]["finish_reason"] for one in answers]
    assert (set(going_on), ended) == ({None}, "length")
    assert answers[-1]["usage"]["completion_tokens"] == 3
    assert engine.requests[0].stop.max_tokens == 1024
    assert engine.requests[0].stop.strings == tuple(CONTINUE["stop"])


async def test_a_prompt_without_a_suffix_is_a_hole_at_the_files_end(tmp_path):
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
async def test_what_is_not_supported_is_refused_by_name(tmp_path, given, named):
    async with mistral_host(tmp_path, HeldEngine()) as host:
        response = await host.client.post(FIM, json=given)
    assert response.status_code == 400
    assert response.json()["object"] == "error"
    assert named in response.json()["message"]
