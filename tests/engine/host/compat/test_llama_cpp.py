"""llama.cpp's `/infill` and `/completion`: what is read, what is answered, and who goes away."""

import asyncio
import json

import pytest

from engine.completer import EngineInfo
from engine.errors import InputError
from engine.host.compat.drop_in_api import TextRequest
from engine.host.compat.llama_cpp import LLAMA_CPP
from engine.host.protocol import MAX_TOKENS
from engine.request import Buffer, FinishReason
from tests.support.held_engine import INFO, HeldEngine
from tests.support.polling import eventually
from tests.support.running_host import running_host

APIS = "llama-cpp"
MODEL = EngineInfo("fake-1b", "cpu", "float32", context_len=4096)
AROUND = {"input_prefix": "def f():\n", "input_suffix": "\nf()\n", "prompt": "    ret"}


def read(path="/infill", **body) -> TextRequest:
    return LLAMA_CPP.read(path, (AROUND if path == "/infill" else {}) | body, MODEL).request


def events(text):
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line]


def test_the_line_before_the_cursor_belongs_to_the_prefix():
    request = read()
    assert (request.prefix, request.suffix) == ("def f():\n    ret", "\nf()\n")
    assert not request.is_raw


def test_a_completion_continues_its_prompt_word_for_word():
    request = read("/completion", prompt="<|fim_prefix|>x", input_prefix="no")
    assert (request.prefix, request.suffix, request.is_raw) == ("<|fim_prefix|>x", "", True)


def test_pieces_of_other_files_are_one_open_file_each_the_latest_first():
    request = read(
        input_extra=[
            {"filename": "a.py", "text": "old\n", "time": [1, 2]},
            {"filename": "b.py", "text": "b\n"},
            {"filename": "a.py", "text": "new\n"},
            {"text": "yanked\n"},
        ]
    )
    assert request.buffers == (
        Buffer("tmp", "yanked\n"),
        Buffer("a.py", "old\n\nnew\n"),
        Buffer("b.py", "b\n"),
    )


def test_more_of_other_files_than_helps_is_left_out_the_oldest_first():
    pieces = [{"filename": f"{number}.py", "text": "x" * 400_000} for number in range(3)]
    assert [one.path for one in read(input_extra=pieces).buffers] == ["2.py", "1.py"]


@pytest.mark.parametrize(
    ("given", "tokens"), [(None, MAX_TOKENS), (-1, MAX_TOKENS), (7, 7), (0, 0)]
)
def test_no_limit_is_the_hosts_own(given, tokens):
    assert read(**({} if given is None else {"n_predict": given})).max_tokens == tokens


def test_nobody_waits_for_a_prompt_that_is_only_read():
    assert read(n_predict=0).is_prefetch
    assert not read(n_predict=1).is_prefetch


@pytest.mark.parametrize(
    ("given", "temperature"),
    [
        ({}, 0.0),  # what llama.vim and llama.vscode send: no temperature
        ({"temperature": 0.8}, 0.8),
        ({"temperature": -1.0}, 0.0),
        ({"temperature": 0.8, "samplers": ["top_k", "top_p", "infill"]}, 0.0),
        ({"temperature": 0.8, "samplers": ["top_k", "temperature"]}, 0.8),
        ({"temperature": 0.8, "samplers": "kt"}, 0.8),
        ({"temperature": 0.8, "samplers": []}, 0.0),
    ],
)
def test_only_a_temperature_whose_sampler_is_named_draws(given, temperature):
    assert read(**given).temperature == temperature


def test_limits_of_time_and_indentation_are_kept():
    request = read(t_max_predict_ms=250, n_indent=4, t_max_prompt_ms=1)
    assert (request.time_limit_ms, request.min_indent) == (250, 4)
    assert read(t_max_predict_ms=0, n_indent=-1).time_limit_ms is None


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"input_prefix": None}, '"input_prefix" is required'),
        ({"input_suffix": None}, '"input_suffix" is required'),
        ({"n_cmpl": 7}, "Field 'n_cmpl': Value must be between 1 <= value <= 4, but got 7"),
        ({"n_probs": 3}, "n_probs"),
        ({"grammar": "root ::= x"}, "grammar"),
        ({"logit_bias": [[1, -1.0]]}, "logit_bias"),
        ({"lora": [{"id": 0, "scale": 0.5}]}, "lora"),
        ({"ignore_eos": True}, "ignore_eos"),
    ],
)
def test_what_would_change_the_answer_is_refused_by_name(given, named):
    with pytest.raises(InputError) as refused:
        read(**given)
    assert named in str(refused.value)


async def test_an_answer_has_the_text_and_its_cost(tmp_path):
    async with running_host(tmp_path, HeldEngine(), apis=APIS) as host:
        response = await host.client.post("/infill", json=AROUND | {"id_slot": 2})
    answer = response.json()
    assert response.status_code == 200
    assert answer["content"] == "one two three"
    assert (answer["stop"], answer["stop_type"], answer["truncated"]) == (True, "eos", False)
    assert (answer["tokens_predicted"], answer["tokens_evaluated"]) == (3, 100)
    assert (answer["tokens_cached"], answer["id_slot"]) == (102, 2)
    timings = answer["timings"]
    assert (timings["cache_n"], timings["prompt_n"], timings["predicted_n"]) == (90, 10, 3)
    assert timings["predicted_per_second"] == pytest.approx(3000 / 7)
    assert answer["generation_settings"]["n_ctx"] == INFO.context_len


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_where_a_text_only_repeats_what_follows_another_one_is_written(tmp_path, is_streamed):
    engine = HeldEngine((), ending=FinishReason.SUFFIX, others=("urn 1",))
    async with running_host(tmp_path, engine, apis=APIS) as host:
        response = await host.client.post("/infill", json=AROUND | {"stream": is_streamed})
    told = events(response.text) if is_streamed else [response.json()]
    assert "".join(one["content"] for one in told) == "urn 1"
    assert [one.sampling.avoids_suffix for one in engine.requests] == [False, True]


async def test_other_files_reach_prompt_and_pool_as_open_ones_do(tmp_path):
    engine = HeldEngine()
    async with running_host(tmp_path, engine, apis=APIS) as host:
        extra = [{"filename": "a.py", "text": "x = 1\n"}]
        for slot in (0, 0, 1):
            asked = AROUND | {"input_extra": extra, "id_slot": slot}
            await host.client.post("/infill", json=asked)
    assert [one.open_buffers for one in engine.requests] == [(Buffer("a.py", "x = 1\n"),)] * 3
    first, second, other = (one.cache_key for one in engine.requests)
    assert first == second != other


async def test_llama_vim_finds_the_content_by_its_pattern(tmp_path):
    """It looks for `"content":"` before it reads the answer, so no blank may stand there."""
    async with running_host(tmp_path, HeldEngine(), apis=APIS) as host:
        answers = [
            await host.client.post("/infill", json=AROUND | more)
            for more in ({}, {"n_predict": 0}, {"response_fields": [""]}, {"lora": [{"id": 0}]})
        ]
    assert [one.status_code for one in answers] == [200, 200, 200, 400]
    assert all('"content":"' in one.text and one.text.startswith("{") for one in answers)
    assert answers[2].json() == {"content": "one two three"}


async def test_the_fields_that_are_wanted_come_by_their_whole_names(tmp_path):
    fields = ["content", "timings/predicted_n", "truncated", "tokens_cached", "none/such"]
    async with running_host(tmp_path, HeldEngine(), apis=APIS) as host:
        response = await host.client.post("/infill", json=AROUND | {"response_fields": fields})
    assert response.json() == {
        "content": "one two three",
        "timings/predicted_n": 3,
        "truncated": False,
        "tokens_cached": 102,
    }


async def test_a_stream_ends_with_the_cost(tmp_path):
    engine = HeldEngine(ending=FinishReason.MAX_TOKENS)
    async with running_host(tmp_path, engine, apis=APIS) as host:
        response = await host.client.post("/completion", json={"prompt": "x", "stream": True})
    *told, ended = events(response.text)
    assert "".join(one["content"] for one in told) == "one two three"
    assert not any(one["stop"] for one in told)
    assert (ended["content"], ended["stop"], ended["stop_type"]) == ("", True, "limit")
    assert ended["timings"]["predicted_n"] == 3
    assert engine.requests[0].is_raw


async def test_requests_of_one_slot_do_not_end_each_other(tmp_path):
    """Two windows use slot 0, and llama.vim reads its pieces ahead while it completes."""
    engine = HeldEngine(is_held=True)
    async with running_host(tmp_path, engine, apis=APIS) as host:
        first = asyncio.create_task(host.client.post("/infill", json=AROUND | {"id_slot": 0}))
        await asyncio.to_thread(engine.began.acquire)
        others = [
            asyncio.create_task(host.client.post("/infill", json=AROUND | more))
            for more in ({"id_slot": 0}, {"id_slot": 0, "n_predict": 0})
        ]
        await eventually(lambda: host.service.scheduler.load_of().waiting == 2)
        engine.is_held = False
        answers = [await one for one in (first, *others)]
    assert [one.status_code for one in answers] == [200, 200, 200]


async def test_props_describe_the_host(tmp_path):
    async with running_host(tmp_path, HeldEngine(), apis=APIS) as host:
        props = (await host.client.get("/props")).json()
    assert (props["total_slots"], props["model_path"]) == (1, "fake-1b")
    assert props["default_generation_settings"]["n_ctx"] == INFO.context_len
