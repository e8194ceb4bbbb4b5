"""The `openai` package of PyPI against a host with a tiny model, as its users write it."""

from typing import Any

import openai
import pytest

from engine.request import FinishReason
from tests.support.held_engine import HeldEngine
from tests.support.polling import eventually
from tests.support.running_host import TOKEN, dropped_in_host
from tests.support.tiny_models import tiny_engine

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("one_thread")]

PREFIX = "def add(a, b):\n    ret"
SUFFIX = "\n\ndef sub(a, b):\n    return a - b\n"
TALK: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "x = "}]
ASKED = {"model": "any", "prompt": "def f():\n", "max_tokens": 30}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return tiny_engine(tmp_path_factory.mktemp("engine"))


def client_of(host, token=TOKEN):
    return openai.AsyncOpenAI(
        base_url=f"{host.url}/v1",
        api_key=token,
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
    )


async def test_a_hole_is_filled_with_the_usage_told(engine):
    async with dropped_in_host(engine) as host, client_of(host) as client:
        done = await client.completions.create(
            model="any", prompt=PREFIX, suffix=SUFFIX, max_tokens=24
        )
        again = await client.completions.create(
            model="any", prompt=PREFIX, suffix=SUFFIX, max_tokens=24, temperature=0
        )
    assert done.id.startswith("cmpl-")
    assert done.choices[0].finish_reason in ("stop", "length")
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens
    assert done.usage.prompt_tokens > 20
    assert done.choices[0].text == again.choices[0].text
    assert done.system_fingerprint == again.system_fingerprint


async def test_a_stream_says_what_the_whole_says(engine):
    async with dropped_in_host(engine) as host, client_of(host) as client:
        whole = await client.completions.create(**ASKED)
        stream = await client.completions.create(
            **ASKED, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].text
    assert len(text) > 10
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason
    assert chunks[-1].usage == whole.usage
    assert len({chunk.id for chunk in chunks}) == 1


async def test_a_drawn_text_is_that_of_its_seed(engine):
    asked = ASKED | {"temperature": 1.0}
    async with dropped_in_host(engine) as host, client_of(host) as client:
        texts = [
            (await client.completions.create(**asked, seed=seed)).choices[0].text
            for seed in (1, 1, 2)
        ]
    assert texts[0] == texts[1] != texts[2]


async def test_no_stop_string_is_in_the_text_whether_it_is_streamed_or_not(engine):
    async with dropped_in_host(engine) as host, client_of(host) as client:
        free = (await client.completions.create(**ASKED)).choices[0].text
        stop = free[7:10]
        whole = await client.completions.create(**ASKED, stop=stop)
        stream = await client.completions.create(**ASKED, stop=[stop], stream=True)
        streamed = "".join([chunk.choices[0].text async for chunk in stream])
    assert whole.choices[0].text == streamed == free[: free.index(stop)]
    assert whole.choices[0].finish_reason == "stop"


async def test_log_probabilities_come_with_the_text_of_each_token(engine):
    asked = ASKED | {"logprobs": 1}
    async with dropped_in_host(engine) as host, client_of(host) as client:
        whole = await client.completions.create(**asked)
        stream = await client.completions.create(**asked, stream=True)
        pieces = [chunk.choices[0].logprobs async for chunk in stream]
    told, text = whole.choices[0].logprobs, whole.choices[0].text
    assert "".join(told.tokens) == text
    assert len(told.tokens) == whole.usage.completion_tokens
    ends = [*told.text_offset[1:], len(text)]
    assert told.tokens == [text[a:b] for a, b in zip(told.text_offset, ends, strict=True)]
    assert all(log_prob <= 0 for log_prob in told.token_logprobs)
    assert [list(top.values()) for top in told.top_logprobs] == [
        [log_prob] for log_prob in told.token_logprobs
    ]
    assert [offset for piece in pieces if piece for offset in piece.text_offset] == told.text_offset


async def test_no_tokens_only_read_the_prompt(engine):
    async with dropped_in_host(engine) as host, client_of(host) as client:
        done = await client.completions.create(model="any", prompt="x = 1\n", max_tokens=0)
    assert (done.choices[0].text, done.choices[0].finish_reason) == ("", "length")


async def test_a_chat_is_answered_whole_and_in_a_stream_alike(engine):
    async with dropped_in_host(engine) as host, client_of(host) as client:
        models = (await client.models.list()).data
        whole = await client.chat.completions.create(
            model="any", messages=TALK, max_tokens=30, logprobs=True, top_logprobs=1
        )
        stream = await client.chat.completions.create(
            model="any",
            messages=TALK,
            max_completion_tokens=30,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    (choice,) = whole.choices
    assert models[0].capabilities["completion_chat"]
    assert choice.message.content
    assert len(choice.message.content) > 5
    assert "".join(one.token for one in choice.logprobs.content) == choice.message.content
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert deltas[0].role == "assistant"
    assert "".join(one.content or "" for one in deltas) == choice.message.content
    assert chunks[-2].choices[0].finish_reason == choice.finish_reason
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens


async def test_who_leaves_a_stream_ends_the_work():
    engine = HeldEngine(words=("one ",) * 50, is_held=True)
    async with dropped_in_host(engine) as host, client_of(host) as client:
        engine.permits.release()
        stream = await client.completions.create(model="any", prompt="x", stream=True)
        async for chunk in stream:
            assert chunk.choices[0].text == "one "
            break
        await stream.close()
        await eventually(lambda: engine.ended)
    assert engine.ended == [FinishReason.CANCELLED]


async def test_errors_are_those_of_the_package(engine):
    async with dropped_in_host(engine) as host, client_of(host) as client:
        with pytest.raises(openai.BadRequestError, match="echo"):
            await client.completions.create(model="any", prompt="x", echo=True)
        with pytest.raises(openai.BadRequestError, match="tokens"):
            await client.completions.create(model="any", prompt="x\n" * 2000)
        with pytest.raises(openai.BadRequestError, match="tokens"):
            await client.completions.create(model="any", prompt="x\n" * 2000, stream=True)
        with pytest.raises(openai.NotFoundError, match="no other model"):
            await client.models.retrieve("gpt-3.5-turbo-instruct")
        async with client_of(host, "sk-wrong") as stranger:
            with pytest.raises(openai.AuthenticationError, match="token"):
                await stranger.models.list()
        models = (await client.models.list()).data
    assert len(models) == 1
