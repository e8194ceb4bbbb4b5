"""What suggestions saved by day, counted from real accepts and kept in one file."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from lsp_server import saved
from lsp_server.saved import Day, Savings, add, saved_days, today
from tests.support.held_engine import HeldEngine
from tests.support.served_editor import served

SOURCE = "def total(items):\n    |"
WORDS = ("return ", "sum(items)")  # 17 characters


def kept(tmp_path):
    return saved_days(tmp_path).get(today())


async def accept(shown, item):
    await shown.run("foregram.accept", *item.command.arguments)


async def accept_part(shown, item, length):
    told = {"insertText": item.insert_text, "command": {"arguments": [*item.command.arguments]}}
    params = {"item": told, "acceptedLength": length}
    shown.client.protocol.notify("textDocument/didPartiallyAcceptCompletion", params)


async def test_an_accept_saves_the_keys_of_its_text_less_its_own(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, _):
        shown.open(SOURCE)
        (item,) = await shown.items()
        await accept(shown, item)
    assert kept(tmp_path) == Day(keystrokes=16, accepted=1, offered=1)


@pytest.mark.parametrize(("part", "keystrokes"), [(None, 13), (4, 3)])
async def test_what_was_typed_of_a_suggestion_is_not_saved(tmp_path, part, keystrokes):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, _):
        shown.open(SOURCE)
        await shown.items()
        shown.type("ret")
        (rest,) = await shown.items()
        await (accept(shown, rest) if part is None else accept_part(shown, rest, part))
    assert kept(tmp_path) == Day(keystrokes, accepted=1, offered=1)


async def test_only_what_was_on_the_screen_counts(tmp_path):
    """The completion may have become longer than the item that was accepted."""
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, _):
        shown.open(SOURCE)
        (item,) = await shown.items()
        await shown.run("foregram.accept", item.command.arguments[0], 6, 0)
    assert kept(tmp_path).keystrokes == 5


async def test_each_part_costs_a_key_and_all_are_one_accepted_suggestion(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, _):
        shown.open(SOURCE)
        (item,) = await shown.items()
        await accept_part(shown, item, 7)
        await accept_part(shown, item, 10)  # what was accepted before counts in its length, too
        await accept(shown, item)
        await accept(shown, item)  # has nothing more to take
    assert kept(tmp_path) == Day(keystrokes=14, accepted=1, offered=1)


async def test_a_suggestion_that_was_not_taken_lowers_the_share(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, _):
        shown.open(SOURCE)
        await shown.items()
        shown.type("x = 1\n    ")
        (item,) = await shown.items()
        await accept(shown, item)
    assert kept(tmp_path).accepted_share == 0.5


async def test_a_secret_file_adds_nothing(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS), uri="file:///shop/.env") as (shown, _):
        shown.open("PASSWORD=|")
        assert await shown.items() == []
        await shown.run("foregram.accept", "no id of ours", 9)
    assert kept(tmp_path) is None


@pytest.fixture
def savings(tmp_path):
    return Savings(lambda: tmp_path)


async def test_an_enter_is_one_key_with_the_indentation_behind_it(savings, tmp_path):
    savings.accepted("one", "if a:\n        b()\n    c", 0)
    await savings.close()
    assert kept(tmp_path).keystrokes == 5 + 1 + 3 + 1 + 1 - 1


async def test_an_accept_counts_on_the_day_of_its_offer(savings, tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "today", lambda: "2026-11-28")
    savings.offered("one")
    monkeypatch.setattr(saved, "today", lambda: "2026-11-29")
    savings.accepted("one", "word", 0)
    savings.offered("two")
    await savings.close()
    assert saved_days(tmp_path) == {"2026-11-28": Day(3, 1, 1), "2026-11-29": Day(offered=1)}


async def test_what_was_counted_is_written_soon_without_an_end(savings, tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "_WRITE_S", 0)
    savings.offered("one")
    while kept(tmp_path) is None:
        await asyncio.sleep(0.005)
    await savings.close()
    assert kept(tmp_path) == Day(offered=1)


async def test_what_cannot_be_written_is_written_with_the_next(savings, tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "_WRITE_S", 0)
    (tmp_path / "saved").write_text("in the way of the folder")
    savings.offered("one")
    await savings.close()
    (tmp_path / "saved").unlink()
    savings.offered("two")
    await savings.close()
    assert kept(tmp_path) == Day(offered=2)


def test_several_servers_lose_nothing(tmp_path):
    with ThreadPoolExecutor(8) as servers:
        list(servers.map(lambda _: add(tmp_path, {today(): Day(1, 1, 2)}), range(40)))
    assert kept(tmp_path) == Day(40, 40, 80)


def test_a_month_is_kept_the_latest_day_at_the_end(tmp_path):
    add(tmp_path, {f"2026-10-{day:02}": Day(day) for day in range(1, 32)})
    add(tmp_path, {"2026-11-02": Day(9), "2026-11-01": Day(8)})
    days = saved_days(tmp_path)
    assert len(days) == 31
    assert next(iter(days)) == "2026-10-03"
    assert [*days.values()][-2:] == [Day(8), Day(9)]


def test_a_damaged_file_is_begun_anew(tmp_path):
    add(tmp_path, {today(): Day(5)})
    (tmp_path / "saved/days.json").write_text('{"2026')
    add(tmp_path, {today(): Day(1)})
    assert saved_days(tmp_path) == {today(): Day(1)}
