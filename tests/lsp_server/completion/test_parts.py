"""The beginning of a completion is an answer, and the editor asks again for the rest."""

import asyncio

import pytest

from engine import FinishReason
from engine.host.protocol import Feedback
from tests.support.connected import URI, connected
from tests.support.running_host import HeldEngine

pytestmark = pytest.mark.asyncio

SOURCE = "def total(items):\n    |\n"
LINES = ("total = 0\n", "    for item in items:\n", "        total += item\n", "    return total")
TEXT = "".join(LINES)


def held(*words):
    """An engine that says a word for each permit."""
    return HeldEngine(words or LINES, is_held=True)


async def until(is_so):
    while not is_so():
        await asyncio.sleep(0.002)


async def test_the_first_line_is_the_answer_while_the_others_are_being_written(tmp_path):
    engine = held()
    async with connected(tmp_path, engine, takes_parts=True) as editor:
        editor.open(SOURCE)
        asked = editor.ask()
        engine.permits.release()
        (item,) = (await asked).items
        assert item.insert_text == "total = 0"
        assert engine.ended == []
        engine.permits.release(len(LINES))
        await until(lambda: engine.ended)
        await until(lambda: editor.told)
        assert await editor.texts() == [TEXT]
    assert len(engine.requests) == 1
    assert engine.ended == [FinishReason.END_TOKEN]


async def test_the_editor_is_told_at_the_next_line_and_at_the_end(tmp_path):
    engine = held()
    seen: list[str] = []
    async with connected(tmp_path, engine, takes_parts=True) as editor:
        editor.open(SOURCE)
        asked = editor.ask()
        engine.permits.release()
        await asked
        for number in range(1, len(LINES)):
            engine.permits.release()
            if number == 2:
                continue  # it has grown once: the next time is the end
            await until(lambda: len(editor.told) > len(seen))
            seen.append((await editor.texts())[0])
    assert seen == ["".join(LINES[:2]).rstrip(), TEXT]
    assert editor.told == [(URI, 1)] * 2


async def test_words_are_shown_to_who_has_waited_for_a_moment(tmp_path):
    engine = held("return ", "sum", "(items)")
    async with connected(tmp_path, engine, takes_parts=True) as editor:
        editor.open(SOURCE)
        asked = editor.ask()
        engine.permits.release(2)
        assert [item.insert_text for item in (await asked).items] == ["return sum"]
        engine.permits.release()
        await until(lambda: editor.told)
        assert await editor.texts() == ["return sum(items)"]


async def test_who_types_along_a_part_is_answered_at_once_and_later_by_the_same_completion(
    tmp_path,
):
    engine = held()
    async with connected(tmp_path, engine, takes_parts=True) as editor:
        editor.open(SOURCE)
        asked = editor.ask()
        engine.permits.release()
        await asked
        for number in range(1, len("total = 0")):
            editor.type(TEXT[number - 1])
            assert await editor.texts() == ["total = 0"[number:]]
        editor.type("0\n    ")
        asked = editor.ask()
        engine.permits.release(len(LINES))
        (item,) = (await asked).items
        assert TEXT.removeprefix("total = 0\n    ").startswith(str(item.insert_text))
        await until(lambda: engine.ended)
    assert len(engine.requests) == 1
    assert engine.ended == [FinishReason.END_TOKEN]


async def test_who_takes_a_part_gets_the_rest_from_the_same_completion(tmp_path):
    engine = held()
    async with connected(tmp_path, engine, takes_parts=True) as editor:
        editor.open(SOURCE)
        asked = editor.ask()
        engine.permits.release()
        (item,) = (await asked).items
        editor.type(str(item.insert_text))
        asked = editor.ask()
        engine.permits.release(len(LINES))
        (rest,) = (await asked).items
        assert TEXT.removeprefix(str(item.insert_text)).startswith(str(rest.insert_text))
    assert len(engine.requests) == 1


async def test_who_types_something_else_ends_it_and_what_was_shown_of_it_is_forgotten(tmp_path):
    engine = held()
    async with connected(tmp_path, engine, takes_parts=True) as editor:
        editor.open(SOURCE)
        asked = editor.ask()
        engine.permits.release()
        await asked
        editor.type("x;")
        other = editor.ask()
        await until(lambda: engine.ended)
        assert engine.ended == [FinishReason.CANCELLED]
        engine.is_held = False
        assert (await other).items
        editor.documents.close(URI)
        editor.open(SOURCE)
        assert await editor.texts()
    assert len(engine.requests) == 3  # the third is for what the first one had begun


async def test_an_edit_behind_which_nobody_asks_ends_it(tmp_path):
    engine = held()
    async with connected(tmp_path, engine, takes_parts=True) as editor:
        editor.open(SOURCE)
        asked = editor.ask()
        engine.permits.release()
        await asked
        editor.type("x")
        await until(lambda: engine.ended)
        assert engine.ended == [FinishReason.CANCELLED]
        assert editor.told == []


async def test_who_cannot_ask_again_or_asked_for_all_gets_the_whole_text(tmp_path):
    async with connected(tmp_path, HeldEngine(LINES)) as editor:
        editor.open(SOURCE)
        assert await editor.texts() == [TEXT]
    async with connected(tmp_path, HeldEngine(LINES), takes_parts=True) as editor:
        editor.open(SOURCE)
        assert TEXT in await editor.texts(invoked=True)
    assert editor.told == []


async def test_what_follows_is_computed_ahead_once_the_whole_is_on_the_screen(tmp_path):
    engine = held("total = 0\n", "")
    async with connected(tmp_path, engine, takes_parts=True, speculate=True) as editor:
        editor.open(SOURCE)
        asked = editor.ask()
        engine.permits.release()
        assert [item.insert_text for item in (await asked).items] == ["total = 0"]
        await asyncio.sleep(0)
        assert len(engine.requests) == 1  # what is written goes first
        engine.is_held = False
        await until(lambda: len(engine.requests) == 2)
        assert engine.requests[1].prefix.endswith("total = 0")
    assert editor.told == []


async def test_feedback_about_a_part_is_counted_before_the_completion_has_ended(tmp_path):
    engine = held()
    async with connected(tmp_path, engine, takes_parts=True) as editor:
        editor.open(SOURCE)
        asked = editor.ask()
        engine.permits.release()
        (item,) = (await asked).items
        assert item.command is not None
        (completion_id,) = item.command.arguments or ()
        editor.link.tell(Feedback(editor.link.client_id, str(completion_id), "accepted"))
        page = ""
        while 'kind="accepted"' not in page:
            page = (await editor.host.client.get("/metrics")).text
    counted = next(one for one in page.splitlines() if one.startswith("foregram_accepted_char"))
    assert float(counted.rpartition(" ")[2]) == len(LINES[0])
