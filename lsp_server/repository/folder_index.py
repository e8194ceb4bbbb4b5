"""The index of one workspace folder, kept in step and asked."""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from lsp_server.repository.cursor_view import Question
from lsp_server.repository.indexer import IndexJob, IndexReport
from lsp_server.repository.retrieval import KeptChoices, Retrieval, Shown
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Stamp, Store, StoreError, index_version
from lsp_server.repository.upkeep import Upkeep
from lsp_server.settings import Settings

_LOG = logging.getLogger(__name__)
_MOST_DOCUMENTS = 32
_MOST_TOLD = 1_000


class FolderIndex:
    """`answer` and `release` are for one thread, `add_sendable` for another, all else for the loop's."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        report: Callable[[IndexReport | None], None],
        turn: asyncio.Lock,
    ) -> None:
        self._trouble = ""  # why the last question could not be answered
        self._is_damaged = False  # and it is being made anew
        self._folder = folder
        self._path = index_path(settings, folder)
        allowed, globs = settings.allow_secret_files, settings.repository_globs or ()
        self._files = SourceFiles(folder, allowed=allowed, globs=globs)
        self._sent_files = SourceFiles(
            folder, allowed=allowed, globs=globs
        )  # judged as they go out
        self._choices = KeptChoices()
        self._answers: OrderedDict[str, Sequence[Shown]] = (
            OrderedDict()
        )  # the last of each document
        self._reader: Store | None = None
        self._retrieval: Retrieval | None = None
        self._identity: tuple[int, int] | None = None  # of the file that is open
        self._loop = asyncio.get_running_loop()
        self._told: dict[str, Stamp | None] = {}  # files found to be others, each as it is
        self.upkeep = Upkeep(IndexJob(str(folder), str(self._path), allowed, globs), report, turn)
        self.upkeep.begin()

    @property
    def trouble(self) -> str:
        """Why the last question could not be answered, or why the files are not followed."""
        return self._trouble or self.upkeep.problem

    def last(self, uri: str) -> Sequence[Shown]:
        """What was found last for a document."""
        return self._answers.get(uri, ())

    def add_sendable(self, found: Iterable[Shown], judged: list[Shown]) -> None:
        """Add those whose file is as it was when it was read, and neither ignored nor secret."""
        with suppress(Exception):  # whatever befalls a file, it is not sent
            judged += (one for one in found if self._sent_files.stamp(one.path) == one.stamp)

    def answer(self, question: Question) -> None:
        """Ask the index, if it is there: from then on, `last` is what was found.

        Where that fails, it stays what it was, and `trouble` says why.
        """
        try:
            found = self._shown(question)
        except Exception as error:  # noqa: BLE001 - whatever befalls the index, completions go on
            self.release()  # it is opened again, once it has been made anew
            self._note(error)
            if isinstance(error, StoreError) and not (error.is_passing or self._is_damaged):
                self._is_damaged = True  # once: where that fails, each question finds it again
                self._call(self.upkeep.make_anew)
            return
        self._trouble, self._is_damaged = "", False
        self._answers[question.uri] = found
        self._answers.move_to_end(question.uri)
        if len(self._answers) > _MOST_DOCUMENTS:
            self._answers.popitem(last=False)

    def release(self) -> None:
        """Close the file."""
        if self._reader is not None:
            self._reader.close()
        self._reader = self._retrieval = self._identity = None

    def close(self) -> None:
        """Nobody fills it any more."""
        self.upkeep.close()

    def _shown(self, question: Question) -> Sequence[Shown]:
        self._open()
        if self._reader is None or self._retrieval is None:
            return ()
        view = question.view(self._inner(question.path))
        opened = (one for one in question.opened if one.is_relative_to(self._folder))
        excluded = frozenset(map(self._inner, opened))
        choose = partial(self._retrieval.shown, view, excluded, question.edits)
        with self._reader.reading():
            return self._choices.shown(
                *(question.uri, view, excluded, choose),
                stands=self._retrieval.stands,
                is_quick=question.is_quick,
            )

    def _open(self) -> None:
        """Open the index as it stands there now: what was made anew is another file."""
        found = self._path.stat() if self._path.exists() else None
        identity = None if found is None else (found.st_dev, found.st_ino)
        if identity != self._identity:
            self.release()
        if self._reader is None and identity is not None:
            self._reader = Store.open(self._path)
            self._retrieval = Retrieval(self._reader, self._files, self._tell)
            self._identity = identity

    def _tell(self, path: str, stamp: Stamp | None) -> None:
        """Have a file that is not as the index has it read again, where no editor says that it changed.

        Once: where that fails, each question finds it again.
        """
        if path in self._told and self._told[path] == stamp:
            return
        if len(self._told) == _MOST_TOLD:
            self._told.clear()
        self._told[path] = stamp
        self._call(partial(self.upkeep.changed, (path,)))

    def _call(self, work: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(work)

    def _note(self, error: Exception) -> None:
        """Log what is wrong, once, however many questions it befalls."""
        told = str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
        if told != self._trouble:
            _LOG.warning("the repository could not be asked: %s", told)
        self._trouble = told

    def _inner(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def index_path(settings: Settings, folder: Path) -> Path:
    """Where the index of a folder is: another one where other files or rules fill it.

    So windows of other settings, or of another version, leave each other's alone.
    """
    globs = settings.repository_globs or ()
    key = repr((str(folder), settings.allow_secret_files, globs, index_version()))
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    return indexes_folder(settings) / f"{name}.sqlite"


def indexes_folder(settings: Settings) -> Path:
    """Where all indexes are."""
    return settings.cache_folder / "repository"
