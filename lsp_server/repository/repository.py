"""The repository of one editor: an index for each workspace folder, asked beside the event loop."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

from engine.host.protocol import MAX_SNIPPETS, RepositorySnippet
from lsp_server.privacy.hidden_files import innermost
from lsp_server.repository.cursor_view import OnProgress, Question, Sendable
from lsp_server.repository.folder_index import FolderIndex
from lsp_server.repository.indexer import IndexReport
from lsp_server.repository.retrieval import Shown
from lsp_server.repository.source_files import is_never_indexed
from lsp_server.settings import Settings

_LONGEST_PATH = 1_000  # characters
_PATIENCE_S = 0.05  # that a request waits; what is found later serves the next one
_Work = Callable[[], object]
_LATE = "no answer came in time"


class Repository:
    """Indexes the folders that it is told of, and says what they show for a cursor."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._report = partial(_tell, on_progress)
        self._indexes: dict[Path, FolderIndex] = {}
        self._settings: tuple[object, ...] | None = None
        self._turn = asyncio.Lock()  # one folder is filled after the other
        self._thread = QuestionThread()
        self._judging = QuestionThread()  # of what is sent: a slow question is not waited for
        self._heeding: set[asyncio.Future[None]] = set()  # asyncio itself holds them weakly
        self._is_late = False  # the last answer was

    @property
    def trouble(self) -> str:
        """Why the last question was not answered, or files are not followed; "" where all is well."""
        troubles = (index.trouble for index in self._indexes.values())
        return next(filter(None, troubles), _LATE if self._is_late else "")

    @property
    def problem(self) -> str:
        """Why files are not indexed; "" where they are."""
        problems = (index.upkeep.problem for index in self._indexes.values())
        return next(filter(None, problems), "")

    def enter(self, roots: Iterable[Path], settings: Settings) -> None:
        """Index these folders, and no others. Needs a running event loop."""
        wanted = settings.repository_globs
        choice = wanted, settings.allow_secret_files, settings.cache_folder
        folders = set(roots) if wanted is not None and settings.enable else set()
        is_other = choice != self._settings
        gone = set(self._indexes) if is_other else self._indexes.keys() - folders
        self._settings = choice
        for folder in gone:
            self._leave(self._indexes.pop(folder))
        for folder in folders - self._indexes.keys():
            if _is_project(folder):
                self._indexes[folder] = FolderIndex(folder, settings, self._report, self._turn)

    def changed(self, paths: Iterable[Path]) -> None:
        """These files changed, came or went.

        A checkout may report tens of thousands: a thread goes through them.
        """
        heeding = asyncio.ensure_future(self._heed(paths))
        self._heeding.add(heeding)
        heeding.add_done_callback(self._heeding.discard)

    async def _heed(self, paths: Iterable[Path]) -> None:
        heard = await asyncio.to_thread(_by_folder, paths, tuple(self._indexes))
        for folder, inner in heard.items():
            if (index := self._indexes.get(folder)) is not None:
                index.upkeep.hear(inner)

    def look(self) -> None:
        """Files may have changed that nobody tells of."""
        for index in self._indexes.values():
            index.upkeep.look()

    async def shown(self, question: Question) -> Sendable | None:
        """What fits the cursor best; where that takes long, what did the last time.

        Another prompt than the last one would be read from its start.
        """
        folder = innermost(question.path, self._indexes)
        if folder is None:
            return None
        index = self._indexes[folder]
        answer = partial(index.answer, question)
        self._is_late = not await _in_time(self._thread, question.uri, answer)
        return partial(self._sendable, folder, question.uri, index.last(question.uri))

    async def _sendable(
        self, folder: Path, uri: str, found: Sequence[Shown]
    ) -> tuple[RepositorySnippet, ...]:
        """What may be sent now: a request may have waited for its host since."""
        index = self._indexes.get(folder)
        if index is None or not found:
            return ()
        fitting = [one for one in found[:MAX_SNIPPETS] if len(one.path) <= _LONGEST_PATH]
        judged: list[Shown] = []
        judge = partial(index.add_sendable, fitting, judged)
        if not await _in_time(self._judging, uri, judge):
            self._is_late = True
            return ()
        is_asked = self._indexes.get(folder) is index  # as it was then
        return tuple(RepositorySnippet(one.path, one.text) for one in judged if is_asked)

    async def filled(self) -> None:
        """Wait until all indexes are in step."""
        await asyncio.gather(*self._heeding)
        for index in self._indexes.values():
            await index.upkeep.done()

    def close(self) -> None:
        """The editor leaves."""
        for index in self._indexes.values():
            self._leave(index)
        self._indexes.clear()
        self._thread.close()
        self._judging.close()

    def _leave(self, index: FolderIndex) -> None:
        index.close()
        self._thread.ask(f"\0{id(index)}", index.release)


class _Asked(NamedTuple):
    """What is to be done, and who hears that it is over."""

    work: _Work
    over: asyncio.Future[bool]


class QuestionThread:
    """Does one piece of work after the other. Its methods belong to the event loop's thread.

    It ends with the process, also where a disk keeps it waiting.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Asked] = {}  # by buffer
        self._under_way: _Asked | None = None
        self._began = 0.0
        self._queue: SimpleQueue[_Asked | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closing = False

    @property
    def busy_s(self) -> float:
        """How long the work takes that is under way; 0 where none is."""
        return 0.0 if self._under_way is None else time.monotonic() - self._began

    def ask(self, buffer: str, work: _Work) -> asyncio.Future[bool]:
        """Have `work` done, which raises nothing; False: later work of the buffer took its place."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            Thread(target=self._run, args=(self._loop,), name="repository", daemon=True).start()
        if (former := self._waiting.get(buffer)) is not None and not former.over.done():
            former.over.set_result(False)
        self._waiting[buffer] = asked = _Asked(work, self._loop.create_future())
        self._go_on()
        return asked.over

    def close(self) -> None:
        """End, once all is done."""
        self._is_closing = True
        self._go_on()

    def _go_on(self) -> None:
        if self._under_way is None and self._waiting:
            self._under_way = self._waiting.pop(next(iter(self._waiting)))
            self._began = time.monotonic()
            self._queue.put(self._under_way)
        elif self._under_way is None and self._is_closing:
            self._queue.put(None)

    def _ended(self, asked: _Asked) -> None:
        self._under_way = None
        if not asked.over.done():
            asked.over.set_result(True)
        self._go_on()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while (asked := self._queue.get()) is not None:
            asked.work()
            try:
                loop.call_soon_threadsafe(self._ended, asked)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return


async def _in_time(thread: QuestionThread, name: str, work: Callable[[], object]) -> bool:
    """Whether a thread has done its work while a request may wait for it."""
    is_stuck = thread.busy_s > _PATIENCE_S  # then nobody waits for it once more
    done = asyncio.shield(thread.ask(name, work))
    with suppress(TimeoutError):
        return await asyncio.wait_for(done, 0 if is_stuck else _PATIENCE_S)
    return False


def _by_folder(paths: Iterable[Path], folders: Collection[Path]) -> Mapping[Path, set[str]]:
    """Of each folder the files that may be indexed, by their paths within it."""
    found: dict[Path, set[str]] = {}
    for path in paths:
        if (folder := innermost(path, folders)) is not None:
            inner = path.relative_to(folder).as_posix()
            if not is_never_indexed(inner):
                found.setdefault(folder, set()).add(inner)
    return found


def _tell(on_progress: OnProgress, report: IndexReport | None) -> None:
    on_progress(*(0, 0, "") if report is None else (report.done, report.total, report.note))


def _is_project(folder: Path) -> bool:
    """Whether a folder may be somebody's repository: a home folder and the system's are not."""
    return folder.is_dir() and folder not in (Path.home(), *Path.home().parents)
