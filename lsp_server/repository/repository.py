"""The repository of one editor: an index for each workspace folder, queried off the event loop."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from engine.host.protocol import MAX_SNIPPETS
from engine.request import Snippet
from lsp_server.privacy.hidden_files import innermost
from lsp_server.repository.cursor_view import Question
from lsp_server.repository.folder_index import FolderIndex
from lsp_server.repository.indexer import IndexReport
from lsp_server.repository.store import Excerpt
from lsp_server.settings import Settings

_T = TypeVar("_T")
_LONGEST_PATH = 1_000  # characters
_PATIENCE_S = 0.05  # seconds that a request waits; a later answer serves the next one
_LATE = "no answer came in time"


class Repository:
    """Indexes the folders passed to `enter`, and finds excerpts of them for a cursor."""

    def __init__(self, on_progress: Callable[[int, int, str], None]) -> None:
        """`on_progress` takes the files read, their total, and a note once all are read."""
        self._on_progress = on_progress
        self._indexes: dict[Path, FolderIndex] = {}
        self._settings: tuple[object, ...] | None = None
        self._lock = asyncio.Lock()  # one folder is filled after the other
        self._questions = Worker()
        self._judgements = Worker()  # judges what is sent, without waiting for a slow question
        self._is_late = False  # the last answer was

    @property
    def trouble(self) -> str:
        """Why the last question has no answer or files are not followed; "" if all is well."""
        troubles = (index.trouble for index in self._indexes.values())
        return next(filter(None, troubles), _LATE if self._is_late else "")

    @property
    def problem(self) -> str:
        """Why files are not indexed; "" where they are."""
        problems = (index.updates.problem for index in self._indexes.values())
        return next(filter(None, problems), "")

    def enter(self, roots: Iterable[Path], settings: Settings) -> None:
        """Index these folders, and no others. Needs a running event loop."""
        wanted = settings.repository_globs
        choice = wanted, settings.allow_secret_files, settings.cache_folder
        folders = set(roots) if wanted is not None and settings.enable else set()
        gone = self._indexes.keys() - (folders if choice == self._settings else ())
        self._settings = choice
        for folder in gone:
            self._leave(self._indexes.pop(folder))
        for folder in folders - self._indexes.keys():
            if _is_project(folder):
                self._indexes[folder] = FolderIndex(folder, settings, self._report, self._lock)

    def changed(self, uris: Sequence[str]) -> None:
        """Note that these files changed, came or went."""
        for index in self._indexes.values():
            index.updates.changed(uris)

    def look(self) -> None:
        """Look at all files, which may have changed without a report."""
        for index in self._indexes.values():
            index.updates.look()

    async def shown(self, question: Question) -> tuple[Snippet, ...]:
        """Return the best snippets for a cursor that may be sent; the last ones if that takes long.

        The model reads a prompt with other snippets from its start.
        """
        folder, uri = innermost(question.path, self._indexes), question.uri
        if folder is None:
            return ()
        index = self._indexes[folder]
        found = await self._questions.in_time(uri, partial(index.answer, question))
        last = index.last(uri) if found is None else found
        fitting = [one for one in last[:MAX_SNIPPETS] if len(one.path) <= _LONGEST_PATH]
        judged: Sequence[Excerpt] | None = fitting
        if fitting:
            judged = await self._judgements.in_time(uri, partial(index.sendable, fitting))
        self._is_late = found is None or judged is None
        is_asked = self._indexes.get(folder) is index  # the folder was not left meanwhile
        return tuple(Snippet(one.path, one.text) for one in judged or () if is_asked)

    async def filled(self) -> None:
        """Wait until all indexes are up to date."""
        for index in self._indexes.values():
            await index.updates.done()

    def close(self) -> None:
        """Close all indexes and end the workers."""
        for index in self._indexes.values():
            self._leave(index)
        self._indexes.clear()
        self._questions.close()
        self._judgements.close()

    def _leave(self, index: FolderIndex) -> None:
        index.updates.close()
        self._questions.submit(f"\0{id(index)}", index.release)

    def _report(self, report: IndexReport) -> None:
        self._on_progress(report.done, report.total, report.note)


class Worker:
    """Does work piece by piece on a daemon thread. Call its methods on the event loop's thread."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Callable[[], Any], Future[Any]]] = {}  # by buffer
        self._buffers: SimpleQueue[str | None] = SimpleQueue()
        self._began = math.inf  # begin of the current work, by the monotonic clock
        Thread(target=self._run, name="repository", daemon=True).start()

    def submit(self, buffer: str, work: Callable[[], _T]) -> "Future[_T]":
        """Queue work that raises nothing; waiting work of the same buffer is cancelled."""
        done: Future[_T] = Future()
        if former := self._waiting.pop(buffer, None):
            former[1].cancel()
        self._waiting[buffer] = work, done
        self._buffers.put(buffer)
        return done

    async def in_time(self, buffer: str, work: Callable[[], _T]) -> _T | None:
        """Return the result of work, or None if it takes longer than a request may wait."""
        is_stuck = time.monotonic() - self._began > _PATIENCE_S  # then nobody should wait again
        done = self.submit(buffer, work)
        await asyncio.wait([asyncio.wrap_future(done)], timeout=0 if is_stuck else _PATIENCE_S)
        return done.result() if done.done() and not done.cancelled() else None

    def close(self) -> None:
        """End the thread once all work is done."""
        self._buffers.put(None)

    def _run(self) -> None:
        while (buffer := self._buffers.get()) is not None:
            work, done = self._waiting.pop(buffer, (None, None))
            if work is not None and done is not None:  # otherwise later work replaced it
                self._began = time.monotonic()
                done.set_result(work())
                self._began = math.inf


def _is_project(folder: Path) -> bool:
    """Whether a folder may be a repository: a home folder and those above it are not."""
    return folder.is_dir() and folder not in (Path.home(), *Path.home().parents)
