"""The index of a folder: filled by processes, asked beside the event loop."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from engine.request import Snippet
from lsp_server.repository import folder_index
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.folder_index import FolderIndex, Worker, index_path
from lsp_server.repository.index_updates import IndexUpdates
from lsp_server.repository.store import remove_store
from lsp_server.settings import Settings
from tests.support.workspaces import nothing

VIEW = CursorView("cart.py", ["from store import load_order", "load_order("], [""])


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """However busy this machine is."""
    monkeypatch.setattr(folder_index, "_PATIENCE_S", 5.0)


@pytest.fixture
def work(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "store.py").write_text("def load_order(number: int): ...\n")
    return work


def settings(tmp_path: Path, *repository: str) -> Settings:
    wanted = repository or ("on",)
    return Settings(cache_folder=tmp_path / "cache", runtime_folder=tmp_path, repository=wanted)


async def shown(index: FolderIndex, uri: str = "file:///c") -> tuple[Snippet, ...]:
    return await index.shown(uri, VIEW, is_quick=True)


async def found(index: FolderIndex, uri: str = "file:///c") -> list[str]:
    """The paths of what is shown; the first answers may come too late."""
    await index.updates.done()
    for _ in range(20):
        if snippets := await shown(index, uri):
            return [one.path for one in snippets]
    return []


@contextmanager
def slow(worker: Worker, monkeypatch) -> Iterator[None]:
    """Its work takes longer than a request waits."""
    release = threading.Event()
    with monkeypatch.context() as patience:
        patience.setattr(folder_index, "_PATIENCE_S", 0.05)
        worker.submit("a slow disk", release.wait)
        try:
            yield
        finally:
            release.set()


async def in_time(index: FolderIndex, uri: str = "file:///c") -> tuple[Snippet, ...]:
    """What is shown by an answer that came in time, however busy this machine is."""
    while True:
        snippets = await shown(index, uri)
        if not index.trouble:
            return snippets


@asynccontextmanager
async def entered(work: Path, tmp_path: Path, *repository: str) -> AsyncIterator[FolderIndex]:
    index = FolderIndex(work, settings(tmp_path, *repository), nothing, asyncio.Lock())
    yield index
    index.close()


@asynccontextmanager
async def indexed(work: Path, tmp_path: Path) -> AsyncIterator[FolderIndex]:
    """An index that has answered a first question."""
    async with entered(work, tmp_path) as index:
        assert await found(index) == ["store.py"]
        yield index


@pytest.mark.parametrize(
    ("listed", "expected"), [("src/", []), ("*.py", ["store.py"]), ("on", ["store.py"])]
)
async def test_the_setting_says_which_files_are_indexed_in_the_users_cache(
    work, tmp_path, listed, expected
):
    async with entered(work, tmp_path, listed) as index:
        assert await found(index) == expected
        assert index_path(settings(tmp_path, listed), work).exists()


async def test_what_changes_is_followed_and_what_becomes_ignored_is_gone(work, tmp_path):
    async with indexed(work, tmp_path) as index:
        (work / ".gitignore").write_text("store.py\n")
        assert await shown(index) == ()  # at once
        index.updates.changed([(work / ".gitignore").as_uri()])
        await index.updates.done()
        (work / ".gitignore").write_text("")
        (work / "more.py").write_text("def load_order(name: str): ...\n")
        index.updates.changed([(work / "more.py").as_uri(), (work / ".gitignore").as_uri()])
        assert set(await found(index)) >= {"store.py"}


async def test_what_was_sent_is_offered_still_until_it_changes_or_becomes_ignored(work, tmp_path):
    """A prompt that goes on shows it."""
    for name in ("rates", "taxes"):
        (work / f"{name}.py").write_text(f"def load_{name}(number: int): ...\n")
    async with entered(work, tmp_path) as index:
        await index.updates.done()
        for name, expected in (("rates", {"rates.py"}), ("taxes", {"rates.py", "taxes.py"})):
            view = CursorView("cart.py", [f"from {name} import load_{name}", f"load_{name}("], [""])
            snippets: tuple[Snippet, ...] = ()
            while not snippets or index.trouble:
                snippets = await index.shown("file:///c", view, is_quick=True)
            assert {one.path for one in snippets} >= expected
        assert [one.text for one in snippets if one.path == "rates.py"] == [""]
        (work / ".gitignore").write_text("rates.py\n")
        left = await index.shown("file:///c", view, is_quick=True)
        assert "rates.py" not in {one.path for one in left}


async def test_an_index_that_a_question_finds_damaged_is_made_anew(work, tmp_path):
    """No file has changed, so no job would notice."""
    async with indexed(work, tmp_path) as index:
        with sqlite3.connect(index_path(settings(tmp_path), work)) as connection:
            connection.execute("DROP TABLE definition")
        while not index.trouble:
            await shown(index, "file:///d")
        while index.trouble:
            await asyncio.sleep(0.01)
            assert await found(index, "file:///d") in ([], ["store.py"])
        assert await found(index, "file:///d") == ["store.py"]


async def test_an_index_that_cannot_be_made_is_told(work, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/repository").touch()
    async with entered(work, tmp_path) as index:
        await index.updates.done()
        assert await shown(index) == ()
        assert index.trouble == index.updates.problem
        assert "File exists" in index.updates.problem


async def test_an_index_that_another_window_made_anew_is_the_one_that_is_asked(work, tmp_path):
    async with indexed(work, tmp_path) as index:
        remove_store(index_path(settings(tmp_path), work))
        (work / "store.py").rename(work / "shop.py")
        async with entered(work, tmp_path) as other:
            await other.updates.done()
        assert await found(index) == ["shop.py"]


async def test_windows_of_other_settings_or_versions_leave_each_others_index_alone(
    work, tmp_path, monkeypatch
):
    (work / "docs").mkdir()
    (work / "docs/a.py").write_text("a = 1\n")
    async with indexed(work, tmp_path) as index:
        async with entered(work, tmp_path, "docs/") as other:
            await other.updates.done()
        assert [one.path for one in await in_time(index, "file:///d")] == ["store.py"]
    former = index_path(settings(tmp_path), work)
    rules = tmp_path / "rules.py"
    rules.write_text("# Another pattern.\n")
    monkeypatch.setattr("lsp_server.repository.source_text.__file__", str(rules))
    folder_index._rules_digest.cache_clear()
    try:
        assert index_path(settings(tmp_path), work) != former
    finally:
        folder_index._rules_digest.cache_clear()


SECRET = (
    'def load_order(token="AKIA' + 'QRSTUVWX2345ABCD"): ...\n'
)  # in two parts, lest it be found


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda work: (work / "store.py").unlink(), id="removed"),
        pytest.param(lambda work: (work / "store.py").write_text("changed = 1\n"), id="changed"),
        pytest.param(lambda work: (work / "store.py").write_text(SECRET), id="with a secret"),
        pytest.param(lambda work: (work / ".gitignore").write_text("store.py"), id="ignored"),
    ],
)
async def test_of_what_was_shown_last_nothing_stale_or_secret_is_sent(
    work, tmp_path, change, monkeypatch
):
    async with indexed(work, tmp_path) as index:
        with slow(index._questions, monkeypatch):
            assert await shown(index)
            change(work)
            assert await shown(index) == ()


@pytest.mark.parametrize("text", ["def load_order(name: str): ...\n", SECRET])
async def test_a_choice_that_stays_while_typing_never_shows_a_files_former_text(
    work, tmp_path, text
):
    async with indexed(work, tmp_path) as index:
        (work / "store.py").write_text(text)
        index.updates.changed([(work / "store.py").as_uri()])
        await index.updates.done()
        texts = {one.text for one in await in_time(index)}
    assert texts == (set() if text == SECRET else {text})


async def test_a_file_that_changed_and_nobody_told_is_read_again(work, tmp_path):
    text = "def load_order(name: str): ...\n"
    async with indexed(work, tmp_path) as index:
        (work / "store.py").write_text(text)
        while {one.text for one in await in_time(index)} != {text}:
            await index.updates.done()


async def test_a_file_that_cannot_be_read_again_is_told_once(work, tmp_path, monkeypatch):
    async with indexed(work, tmp_path) as index:
        told: list[list[str]] = []
        monkeypatch.setattr(IndexUpdates, "changed", lambda _, uris: told.append(uris))
        (work / "store.py").write_text("changed = 1\n")
        for _ in range(3):
            await in_time(index)
        (work / "store.py").unlink()
        await in_time(index)
        assert told == [[(work / "store.py").as_uri()]] * 2


@pytest.mark.parametrize(("worker", "is_shown"), [("_questions", True), ("_judgements", False)])
async def test_an_answer_that_comes_late_leaves_what_is_shown_if_that_is_judged_in_time(
    work, tmp_path, monkeypatch, worker, is_shown
):
    """Another prompt would be read from its start."""
    async with indexed(work, tmp_path) as index:
        before = await shown(index)
        with slow(getattr(index, worker), monkeypatch):
            late = [await shown(index) for _ in range(2)]
            is_late = index.is_late
        assert await in_time(index) == before
        assert (late, is_late) == ([before if is_shown else ()] * 2, True)


async def test_a_file_whose_judgement_fails_is_not_sent(work, tmp_path, monkeypatch):
    def fail(*_arguments):
        raise RuntimeError

    async with indexed(work, tmp_path) as index:
        assert await shown(index)
        monkeypatch.setattr("lsp_server.repository.source_files.SourceFiles.stamp", fail)
        assert await shown(index) == ()


async def test_whatever_befalls_the_index_is_told_once_and_leaves_what_is_shown(
    work, tmp_path, monkeypatch, caplog
):
    def fail(*_arguments):
        raise RecursionError("too deep")

    async with indexed(work, tmp_path) as index:
        before = await shown(index)
        monkeypatch.setattr("lsp_server.repository.cursor_view.CursorView.chain", property(fail))
        with caplog.at_level(logging.WARNING):
            failed: list[tuple[Snippet, ...]] = []
            while index.trouble != "RecursionError: too deep" or len(failed) < 3:
                failed.append(await shown(index))
        monkeypatch.undo()
        assert await in_time(index) == before
        assert {*failed} == {before}
    assert caplog.text.count("too deep") == 1


async def test_of_one_buffer_the_latest_question_alone_waits():
    worker, release, done = Worker(), threading.Event(), list[str]()
    worker.submit("a", release.wait)
    while worker._waiting:  # it is not under way yet
        await asyncio.sleep(0)
    asked = [worker.submit("a", partial(done.append, f"a{n}")) for n in (2, 3, 4)]
    asked.append(worker.submit("b", partial(done.append, "b1")))
    worker.close()  # what was asked before the end is done
    release.set()
    await asyncio.wait_for(asyncio.wrap_future(asked[-1]), 9)
    assert [one.cancelled() for one in asked] == [True, True, False, False]
    assert done == ["a4", "b1"]
