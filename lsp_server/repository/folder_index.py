"""The index of one workspace folder: kept up to date, and queried off the event loop."""

import asyncio
import hashlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from engine.host.protocol import MAX_SNIPPETS
from engine.request import Snippet
from engine.text import names
from lsp_server import language_names
from lsp_server.privacy import named_secrets, secret_files, secret_kinds, secret_texts
from lsp_server.repository import definitions, source_text, store
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.index_updates import IndexUpdates
from lsp_server.repository.indexer import IndexJob, IndexReport
from lsp_server.repository.retrieval import KeptChoices, Retrieval, SentExcerpts
from lsp_server.repository.store import Excerpt, Stamp, Store, StoreError
from lsp_server.settings import Settings

_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)
_LONGEST_PATH = 1_000  # characters; the host accepts paths of up to 1,024
_PATIENCE_S = 0.05  # seconds that a request waits; a later answer serves the next one
_MOST_REPORTED = 1_000  # states of files remembered as reported
# These modules decide what an index holds: if one changes, all files are read again.
_RULES = (
    *(named_secrets, secret_files, secret_kinds, secret_texts),
    *(definitions, source_text, store, language_names, names),
)


class FolderIndex:
    """Call its methods on the event loop's thread; it reads the disk on threads of its own."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        report: Callable[[IndexReport], None],
        lock: asyncio.Lock,
    ) -> None:
        self._trouble = ""  # why the last question has no answer
        self.is_late = False  # the last answer was
        self._is_damaged = False  # the index is damaged, and being rebuilt
        self._folder = folder
        self._path = index_path(settings, folder)
        chosen = settings.allow_secret_files, settings.repository_globs or ()
        job = IndexJob(str(folder), str(self._path), *chosen)
        self._files, self._sent_files = job.files(), job.files()  # each for a thread of its own
        self._choices, self._sent = KeptChoices(), SentExcerpts()
        self._retrieval: Retrieval | None = None
        self._identity: tuple[int, int] | None = None  # device and inode of the file opened last
        self._loop = asyncio.get_running_loop()
        self._report_once = lru_cache(_MOST_REPORTED)(self._report_other)
        self._questions = Worker()
        self._judgements = Worker()  # judges what is sent, without waiting for a slow question
        self.updates = IndexUpdates(job, report, lock)
        self.updates.begin()

    @property
    def trouble(self) -> str:
        """Why the last question has no answer or changes are not followed; "" if all is well."""
        return self._trouble or self.updates.problem

    async def shown(self, uri: str, view: CursorView, *, is_quick: bool) -> tuple[Snippet, ...]:
        """Return the best snippets to send, or the last if late. `is_quick`: see `KeptChoices`.

        Behind them, without text, stand files sent earlier that may still be shown.
        """
        answer = partial(self._answer, uri, view, is_quick=is_quick)
        found = await self._questions.in_time(uri, answer)
        last = self._choices.last(uri) if found is None else found
        fitting = [one for one in last if len(one.path) <= _LONGEST_PATH]
        wanted = [*fitting, *self._sent.earlier(uri, fitting)][:MAX_SNIPPETS]
        judged: Sequence[Excerpt] | None = wanted
        if wanted:
            judged = await self._judgements.in_time(uri, partial(self._sendable, wanted))
        self.is_late = found is None or judged is None
        if judged is not None:
            self._sent.note(uri, judged)
        return tuple(Snippet(one.path, one.text) for one in judged or ())

    def close(self) -> None:
        """Close the file, and end the threads once their work is done."""
        self.updates.close()
        self._questions.submit("", self._release)
        self._questions.close()
        self._judgements.close()

    def _sendable(self, found: Sequence[Excerpt]) -> list[Excerpt]:
        """Return the excerpts whose files are unchanged, and neither ignored nor secret."""
        with suppress(Exception):  # on any error, nothing is sent
            return [one for one in found if self._sent_files.stamp(one.path) == one.stamp]
        return []

    def _answer(self, uri: str, view: CursorView, *, is_quick: bool) -> Sequence[Excerpt]:
        """Ask the index, if there is one; on failure, set `trouble` and return the last answer."""
        try:
            if (retrieval := self._opened()) is not None:
                with retrieval.store.reading():
                    self._choices.choose(uri, view, retrieval, is_quick=is_quick)
        except Exception as error:  # noqa: BLE001 - whatever befalls the index, completions go on
            self._release()  # opened again once it has been rebuilt
            self._note(error)
            if isinstance(error, StoreError) and not (error.is_passing or self._is_damaged):
                self._is_damaged = True  # once: if that fails, each question finds the damage again
                self._call(self.updates.rebuild)
        else:
            self._trouble, self._is_damaged = "", False
        return self._choices.last(uri)

    def _release(self) -> None:
        if self._retrieval is not None:
            self._retrieval.store.close()
            self._retrieval = None

    def _opened(self) -> Retrieval | None:
        """Open the current index file, if there is one: a rebuilt index is another file."""
        found = self._path.stat() if self._path.exists() else None
        identity = None if found is None else (found.st_dev, found.st_ino)
        if identity != self._identity:
            self._release()
        if self._retrieval is None and found is not None:
            self._retrieval = Retrieval(Store.open(self._path), self._files, self._report_once)
        self._identity = identity
        return self._retrieval

    def _report_other(self, path: str, _stamp: Stamp | None) -> None:
        """Have a file read again that no editor may report; once per state, as reading may fail."""
        self._call(self.updates.changed, [(self._folder / path).as_uri()])

    def _call(self, work: Callable[..., None], *values: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(work, *values)

    def _note(self, error: Exception) -> None:
        """Log an error once, however many questions meet it."""
        told = str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
        if told != self._trouble:
            _LOG.warning("the repository could not be asked: %s", told)
        self._trouble = told


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


def index_path(settings: Settings, folder: Path) -> Path:
    """Return the path of a folder's index; other settings and rules have an index of their own."""
    globs = settings.repository_globs or ()
    key = repr((str(folder), settings.allow_secret_files, globs, _rules_digest()))
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    return indexes_folder(settings) / f"{name}.sqlite"


@cache
def _rules_digest() -> str:
    """Return a hash of the modules' sources, so that nobody has to bump a version."""
    texts = (Path(str(module.__file__)).read_bytes() for module in _RULES)
    return hashlib.sha256(b"".join(texts)).hexdigest()


def indexes_folder(settings: Settings) -> Path:
    """Return the folder of all indexes."""
    return settings.cache_folder / "repository"
