"""Requests as clients send them, byte for byte of their JSON, and what the clients read of answers.

Each file of `tests/data/clients` says whose they are and whether they were recorded.
"""

import json
import re
from pathlib import Path

import pytest

from engine.host.compat.apis import NAMES
from tests.support.held_engine import HeldEngine
from tests.support.running_host import running_host

CLIENTS = Path(__file__).parents[3] / "data/clients"
# What llama.vim looks for before it reads an answer: without it, it takes it for none.
LLAMA_VIM = re.compile(r'\A\s*\{.*"content"\s*:"', re.DOTALL)


def requests(client):
    return json.loads((CLIENTS / f"{client}.json").read_text())["requests"]


def choices_of(response):
    """The choices of a stream's events."""
    data = [one.removeprefix("data: ") for one in response.text.split("\n\n") if one]
    return [choice for one in data[:-1] for choice in json.loads(one)["choices"]]


def answered(response):
    """The text of a stream's deltas."""
    return "".join(choice["delta"].get("content", "") for choice in choices_of(response))


async def replayed(tmp_path, client, engine=None):
    """The requests of a client, each with its answer, whose status is 200."""
    answers = []
    async with running_host(tmp_path, engine or HeldEngine(), apis=",".join(NAMES)) as host:
        for one in requests(client):
            response = await host.client.request(
                one["method"], one["path"], json=one.get("body"), headers=one["headers"]
            )
            assert response.status_code == 200, (one["path"], response.text)
            answers.append((one, response))
    return answers


async def test_llama_vim_gets_the_fields_that_it_names_as_it_looks_for_them(tmp_path):
    answers = await replayed(tmp_path, "llama_vim")
    assert len(answers) > 5
    for asked, response in answers:
        assert LLAMA_VIM.match(response.text)
        wanted = {name for name in asked["body"]["response_fields"] if name}
        assert set(response.json()) == wanted | {"content"}


async def test_llama_vims_files_reach_the_engine(tmp_path):
    engine = HeldEngine()
    await replayed(tmp_path, "llama_vim", engine)
    shown = {buffer.path for request in engine.requests for buffer in request.open_buffers}
    assert shown == {"shop.py", "cart.py"}


async def test_llama_vims_instruct_mode_reads_the_selection_ahead_and_then_streams(tmp_path):
    """Its first request, while the user writes, must not generate an answer."""
    engine = HeldEngine()
    (_, ahead), (asked, streamed) = await replayed(tmp_path, "llama_vim_instruct", engine)
    assert [one.stop.max_tokens for one in engine.requests] == [0, 1024]
    assert ahead.json()["choices"][0]["message"]["content"] == ""
    assert answered(streamed) == "one two three"
    assert engine.requests[1].messages[-1].content == asked["body"]["messages"][-1]["content"]


@pytest.mark.parametrize("client", ["aider", "zed_inline_assistant", "continue_edit"])
async def test_a_chat_client_reads_its_answer_from_the_deltas(tmp_path, client):
    engine = HeldEngine()
    ((asked, response),) = await replayed(tmp_path, client, engine)
    assert answered(response) == "one two three"
    (request,) = engine.requests
    told = [one["content"] for one in asked["body"]["messages"]]
    assert [one.content for one in request.messages] == told
    assert request.copied == asked["body"].get("prediction", {}).get("content", "")


async def test_continues_core_edits_by_its_own_prompt_and_by_chat(tmp_path):
    engine = HeldEngine()
    (asked, prompted), (_, chatted) = await replayed(tmp_path, "continue_core_edit", engine)
    texts = [choice["text"] for choice in choices_of(prompted)]
    assert "".join(texts) == answered(chatted) == "one two three"
    by_prompt, by_chat = engine.requests
    assert by_prompt.prefix == asked["body"]["prompt"]
    assert by_chat.copied == "def area(width, height):\n    return width * height\n"


async def test_llama_vscode_gets_a_status_and_a_list(tmp_path):
    (_, health), (_, completed), (_, prefilled) = await replayed(tmp_path, "llama_vscode")
    assert health.json()["status"] == "ok"
    assert [one["content"] for one in completed.json()] == ["one two three"]
    assert prefilled.json()["content"] == ""


async def test_tabby_agent_gets_health_completions_and_empty_answers_to_events(tmp_path):
    answers = await replayed(tmp_path, "tabby_agent")
    by_path = {asked["path"]: response for asked, response in answers}
    assert by_path["/v1/health"].json()["model"] == "fake-1b"
    completion = by_path["/v1/completions"].json()
    assert completion["choices"] == [{"text": "one two three", "index": 0}]
    assert by_path["/v1/events"].content == b""
    assert by_path["/v1/events?select_kind=line"].content == b""
