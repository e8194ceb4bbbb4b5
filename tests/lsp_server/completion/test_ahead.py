"""The host reads prompts and writes what follows an accept before anyone waits for it."""

import asyncio

import pytest

from engine.request import FinishReason
from lsp_server.reasons import Reason
from tests.support.connected import SURE, TEXT, URI, WORDS, editing
from tests.support.editor import behind
from tests.support.held_engine import HeldEngine


async def test_what_follows_an_accept_is_there_before_it_is_asked_for(tmp_path):
    engine = HeldEngine(WORDS)
    async with editing(tmp_path, engine, speculate=True) as editor:
        await editor.ask()
        await editor.begun()
        await editor.begun()  # ahead of the user
        assert engine.requests[1].prefix == f"def total(items):\n    {TEXT}"
        assert engine.requests[1].cache_key == engine.requests[0].cache_key


async def test_what_follows_is_asked_for_once_however_many_keys_are_typed_along(tmp_path):
    """Each key began it anew, so that it never ended."""
    engine = HeldEngine(("return sum(item for item in items)",))
    async with editing(tmp_path, engine, speculate=True) as editor:
        (text,) = await editor.texts()
        await editor.begun()
        engine.is_held = True
        for key in text[:20]:
            editor.type(key)
            assert await editor.texts()
            await asyncio.sleep(0)  # when it would be asked for
        await editor.begun()
        engine.is_held = False
        engine.permits.release(9)
        while len(engine.ended) < 2:
            await asyncio.sleep(0.005)
    assert len(engine.requests) == 2
    assert engine.ended == [FinishReason.END_TOKEN] * 2


async def test_what_follows_an_accept_begins_behind_the_longest_text(tmp_path):
    engine = HeldEngine(SURE, is_held=True)
    async with editing(tmp_path, engine, speculate=True) as editor:
        engine.permits.release()
        await editor.ask()
        await editor.begun()
        engine.permits.release(9)
        await editor.begun()  # ahead of the user
    assert engine.requests[1].prefix == "def total(items):\n    return items[0]"


async def test_the_first_key_where_the_cursor_rested_is_answered_from_memory(tmp_path):
    engine = HeldEngine(WORDS)
    async with editing(tmp_path, engine, speculate=True) as editor:
        await editor.link.search.ready()
        editor.completer.ahead.rested(URI, behind(editor.before), is_written=True)
        while not engine.ended:
            await asyncio.sleep(0.005)
        editor.type(TEXT[0])
        assert await editor.texts() == [TEXT[1:]]
    assert engine.requests[0].prefix == "def total(items):\n    "
    assert len(engine.ended) == 1


async def test_another_key_than_what_was_written_there_is_asked_for_at_once(tmp_path):
    engine = HeldEngine(WORDS, is_held=True)
    async with editing(tmp_path, engine, speculate=True) as editor:
        await editor.link.search.ready()
        editor.completer.ahead.rested(URI, behind(editor.before), is_written=True)
        await editor.begun()
        engine.permits.release()
        editor.type("x = ")
        asked = editor.ask()
        await editor.begun()
        engine.is_held = False
        assert await asked
    assert engine.ended[0] is FinishReason.CANCELLED
    assert engine.requests[1].prefix.endswith("x = ")


async def test_a_new_line_is_read_before_it_is_asked_for(tmp_path):
    engine = HeldEngine(WORDS)
    async with editing(tmp_path, engine) as editor:
        await editor.ask()
        editor.type("x = 1\n    ")
        cursor = editor.documents.snapshot(URI).position(behind(editor.before))
        editor.completer.ahead.prefill(URI, cursor)
        while len(engine.requests) < 2:
            await asyncio.sleep(0.005)
    assert engine.requests[1].prefix == "def total(items):\n    x = 1\n    "
    assert len(engine.ended) == 1  # nothing was written for it


@pytest.fixture
def slow_host(monkeypatch):
    monkeypatch.setattr("lsp_server.host.link._MOMENT_MS", float("-inf"))


def prefills(engine):
    return [one.prefix for one in engine.requests if not one.stop.max_tokens]


async def prefilled(engine, count):
    """Wait for so many prefills, and return the texts before their cursors."""
    async with asyncio.timeout(10):
        while len(prefills(engine)) < count:
            await asyncio.sleep(0.005)
    return prefills(engine)


@pytest.mark.usefixtures("slow_host")
async def test_who_pauses_gets_the_prompt_read_once_the_running_completion_has_ended(tmp_path):
    engine = HeldEngine(WORDS, is_held=True)
    async with editing(tmp_path, engine) as editor:
        asked = editor.ask()
        await editor.begun()
        editor.completer.ahead.paused(URI)
        engine.is_held = False
        await asked
        assert await prefilled(engine, 2) == ["def total(items):\n    "] * 2
    assert engine.ended == [FinishReason.END_TOKEN]


@pytest.mark.usefixtures("slow_host")
async def test_a_slow_host_reads_the_prompt_for_now_and_then_the_one_for_later(tmp_path):
    engine = HeldEngine(WORDS)
    async with editing(tmp_path, engine) as editor:
        await editor.ask()
        editor.completer.ahead.paused(URI)
        assert len(set(await prefilled(engine, 2))) == 1


@pytest.mark.usefixtures("slow_host")
async def test_a_slow_host_reads_the_next_layout_where_the_cursor_rests_behind_a_completion(
    tmp_path,
):
    engine = HeldEngine(WORDS)
    async with editing(tmp_path, engine) as editor:
        await editor.ask()
        editor.completer.ahead.rested(URI, behind(editor.before), is_written=True)
        assert await prefilled(engine, 1)
    assert len(engine.ended) == 1  # nothing is written again


@pytest.mark.usefixtures("slow_host")
async def test_a_prompt_whose_reading_made_way_for_writing_ahead_is_read_then(
    tmp_path, monkeypatch
):
    engine, read = HeldEngine(WORDS, is_held=True), []
    async with editing(tmp_path, engine, speculate=True) as editor:
        complete = editor.link.complete

        async def slowly(anchor, stop, *others, **how):
            if not stop.max_tokens:
                read.append(len(engine.ended))
                if read == [1]:
                    await asyncio.Event().wait()  # until it makes way
            async for event in complete(anchor, stop, *others, **how):
                yield event

        monkeypatch.setattr(editor.link, "complete", slowly)
        asked = editor.ask()
        await editor.begun()
        editor.completer.ahead.paused(URI)
        engine.is_held = False
        await asked
        async with asyncio.timeout(10):
            while 2 not in read:
                await asyncio.sleep(0.005)


@pytest.mark.usefixtures("slow_host")
async def test_who_types_on_before_its_end_gets_no_prompt_read_for_the_pause(tmp_path):
    engine = HeldEngine(WORDS, is_held=True)
    async with editing(tmp_path, engine) as editor:
        asked = editor.ask()
        await editor.begun()
        editor.completer.ahead.paused(URI)
        editor.type("r")
        editor.completer.changed(URI)
        engine.is_held = False
        await asked
        await editor.ask()  # a prefill would have come before
    assert prefills(engine) == []


async def test_a_quick_host_reads_no_prompt_at_a_pause(tmp_path):
    engine = HeldEngine(WORDS)
    async with editing(tmp_path, engine) as editor:
        await editor.ask()
        while not editor.link.reads_quickly:
            await asyncio.sleep(0.005)
        editor.completer.ahead.paused(URI)
        editor.type("r")
        await editor.ask()  # a prefill would have come before
    assert prefills(engine) == []


async def test_a_quick_host_reads_nothing_behind_a_text_that_it_wrote_where_the_cursor_rested(
    tmp_path,
):
    engine = HeldEngine(WORDS)
    async with editing(tmp_path, engine, speculate=True) as editor:
        editor.link.reads_quickly = True
        editor.completer.ahead.rested(URI, behind(editor.before), is_written=True)
        while not engine.ended:
            await asyncio.sleep(0.005)
        assert await editor.texts() == [TEXT]  # a prefill would have come before
    assert prefills(engine) == []


@pytest.mark.usefixtures("slow_host")
async def test_nothing_is_read_once_all_completions_are_stopped(tmp_path, monkeypatch):
    engine, begun = HeldEngine(WORDS, is_held=True), list[str]()
    async with editing(tmp_path, engine) as editor:
        asked = editor.ask()
        await editor.begun()
        editor.completer.ahead.paused(URI)  # waits for the completion
        monkeypatch.setattr(editor.completer.ahead, "prefill", begun.append)
        editor.completer.stop_all()
        engine.is_held = False
        assert isinstance(await asked, Reason)
        await asyncio.sleep(0)  # when its end is told
    assert begun == []
