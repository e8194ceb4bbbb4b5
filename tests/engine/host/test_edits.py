"""Edits through the host: what is refused, what supersedes what, and the lines of a document."""

import asyncio
from typing import Any

import msgspec
import pytest

from engine.edits.edit_prompt import RefusedEditError
from engine.errors import NoChatTemplateError, NoEditModelError
from engine.host.buffers import ClientBuffers, ClientId
from engine.host.protocol import MAX_ANSWER_TOKENS, Cell, CloseRequest, Failed, Problem
from engine.host.request_builder import request_builder
from engine.loader import load_engine
from engine.request import EditOutcome, EditTask, PastEdit
from tests.engine.model.test_chat_template import CHATML
from tests.support.held_engine import HeldEngine
from tests.support.running_host import ask, buffer, running_host
from tests.support.tiny_models import save_model, tiny_model

ASKED = EditTask("Sort.", 0, 2)
ME = ClientId("", "one")


class LessEngine(HeldEngine):
    """An engine whose model knows no form of edits."""

    def check_can_edit(self, task: EditTask) -> None:
        raise (NoChatTemplateError if task.instruction else NoEditModelError)("another model does")


@pytest.mark.parametrize(
    ("task", "code"), [(ASKED, "no_chat_template"), (EditTask(), "no_edit_model")]
)
async def test_a_model_that_makes_no_such_edits_is_named_at_once(tmp_path, task, code):
    async with running_host(tmp_path, LessEngine()) as host:
        response = await host.post("/v1/complete", ask(buffer("x", "y"), edit=task))
    problem = msgspec.json.decode(response.content, type=Problem)
    assert (response.status_code, problem) == (501, Problem(code, "another model does"))


def test_a_history_that_takes_long_to_read_is_no_request():
    edits = (PastEdit("shop.py", 0, ("a",), ("a" * 40_000,)),)
    assert len(EditTask(history=edits * 20).history) == 20
    with pytest.raises(msgspec.ValidationError, match="history"):
        msgspec.convert({"history": [msgspec.to_builtins(one) for one in edits * 32]}, EditTask)


async def test_a_document_that_allows_no_edit_is_answered_with_the_reason(tmp_path):
    class Refusing(HeldEngine):
        def sequence(self, *_: Any, **__: Any) -> Any:
            raise RefusedEditError("large_file")

    async with running_host(tmp_path, Refusing()) as host:
        (done,) = await host.answered(ask(buffer("x"), edit=EditTask()))
    assert done.edit == EditOutcome(refusal="large_file")


async def test_a_second_edit_supersedes_the_first_and_a_completion_neither(tmp_path):
    engine = HeldEngine(is_held=True)
    async with running_host(tmp_path, engine) as host:
        first = asyncio.create_task(host.answered(ask(buffer("x", "y"), edit=ASKED)))
        await asyncio.to_thread(engine.began.acquire)
        completion = asyncio.create_task(host.answered(ask()))
        while not host.service.scheduler.load_of().waiting:
            await asyncio.sleep(0)
        assert not first.done()
        second = asyncio.create_task(host.answered(ask(edit=ASKED)))
        assert await first == [Failed("superseded", "the request was superseded")]
        engine.permits.release(9)
        for one in (completion, second):
            assert (await one)[-1].text == "one two three"


def whole(message, *syncs):
    buffers = ClientBuffers()
    buffers.sync(ME, "/home/ada/shop", syncs)
    request = request_builder(message, ME, buffers)()
    assert request is not None
    return request


def test_the_lines_of_an_edit_are_those_of_the_whole_document():
    lines = [str(number) for number in range(80_000)]
    request = whole(ask(line=70_000, edit=ASKED), buffer(*lines))
    assert (request.prefix + request.suffix).split("\n") == lines
    assert len((request.prefix + request.suffix).split("\n")) == 80_000


def test_an_edit_of_a_cell_sees_that_cell_alone():
    cells = [buffer("import os", uri="file:///b"), buffer("x", "y")]
    request = whole(ask(edit=ASKED, above=(Cell("file:///b"),)), *cells)
    assert request.prefix + request.suffix == "x\ny"


def test_an_edit_leaves_the_cached_prompt_of_completions_alone():
    keys = {whole(message, buffer("x", "y")).cache_key for message in (ask(), ask(edit=EditTask()))}
    assert len(keys) == 2


async def test_an_edits_answer_may_be_longer_than_a_completion(tmp_path):
    engine = HeldEngine()
    async with running_host(tmp_path, engine) as host:
        await host.answered(ask(buffer("x", "y"), edit=ASKED))
    assert engine.requests[0].stop.max_tokens == MAX_ANSWER_TOKENS


@pytest.mark.usefixtures("one_thread")
async def test_an_edit_is_asked_and_answered_over_http(tmp_path):
    folder = save_model(tiny_model("qwen2", seed=4, max_position_embeddings=2048), tmp_path / "m")
    (folder / "chat_template.jinja").write_text(CHATML)
    engine = load_engine(tmp_path / "cache", str(folder), threads=1)
    async with running_host(tmp_path, engine) as host:
        *_, done = await host.answered(ask(buffer("b = 2", "a = 1", "", "c"), edit=ASKED))
        await host.post("/v1/buffers/close", CloseRequest("one"))
    assert done.edit.refusal == "empty_answer"  # a random model writes no code
    assert done.cost.prompt_tokens > 20
