"""The index of one workspace folder: kept up to date, and queried."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from engine.text import names
from lsp_server import language_names
from lsp_server.privacy import named_secrets, secret_files, secret_kinds, secret_texts
from lsp_server.repository import definitions, source_text, store
from lsp_server.repository.cursor_view import CursorView, Question
from lsp_server.repository.index_updates import IndexUpdates
from lsp_server.repository.indexer import IndexJob, IndexReport
from lsp_server.repository.retrieval import KeptChoices, Retrieval
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Excerpt, Stamp, Store, StoreError
from lsp_server.settings import Settings

_LOG = logging.getLogger(__name__)
_MOST_REPORTED = 1_000  # states of files remembered as reported
# These modules decide what an index holds: if one changes, all files are read again.
_RULES = (
    *(named_secrets, secret_files, secret_kinds, secret_texts),
    *(definitions, source_text, store, language_names, names),
)


class FolderIndex:
    """Call `answer` and `release` on one thread, `sendable` on another, the rest on the loop's."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        report: Callable[[IndexReport], None],
        lock: asyncio.Lock,
    ) -> None:
        allowed, globs = settings.allow_secret_files, settings.repository_globs or ()
        self._trouble = ""  # why the last question has no answer
        self._is_damaged = False  # the index is damaged, and being rebuilt
        self._folder = folder
        self._path = index_path(settings, folder)
        self._files = SourceFiles(folder, allowed=allowed, globs=globs)
        self._sent_files = SourceFiles(folder, allowed=allowed, globs=globs)  # for another thread
        self._choices = KeptChoices()
        self._retrieval: Retrieval | None = None
        self._identity: tuple[int, int] | None = None  # device and inode of the file opened last
        self._loop = asyncio.get_running_loop()
        self._report_once = lru_cache(_MOST_REPORTED)(self._report_other)
        job = IndexJob(str(folder), str(self._path), allowed, globs)
        self.updates = IndexUpdates(job, report, lock)
        self.updates.begin()

    @property
    def trouble(self) -> str:
        """Why the last question has no answer, or why changes are not followed."""
        return self._trouble or self.updates.problem

    def last(self, uri: str) -> Sequence[Excerpt]:
        """Return the last answer for a document."""
        return self._choices.last(uri)

    def sendable(self, found: Iterable[Excerpt]) -> list[Excerpt]:
        """Return the excerpts whose files are unchanged, and neither ignored nor secret."""
        with suppress(Exception):  # on any error, nothing is sent
            return [one for one in found if self._sent_files.stamp(one.path) == one.stamp]
        return []

    def answer(self, question: Question) -> Sequence[Excerpt]:
        """Ask the index, if there is one.

        If that fails, return the last answer and set `trouble`.
        """
        try:
            self._ask(question)
        except Exception as error:  # noqa: BLE001 - whatever befalls the index, completions go on
            self.release()  # opened again once it has been rebuilt
            self._note(error)
            if isinstance(error, StoreError) and not (error.is_passing or self._is_damaged):
                self._is_damaged = True  # once: if that fails, each question finds the damage again
                self._call(self.updates.rebuild)
        else:
            self._trouble, self._is_damaged = "", False
        return self.last(question.uri)

    def release(self) -> None:
        """Close the file."""
        if self._retrieval is not None:
            self._retrieval.store.close()
            self._retrieval = None

    def _ask(self, question: Question) -> None:
        retrieval = self._opened()
        if retrieval is not None:
            view = CursorView.of(question, self._folder)
            with retrieval.store.reading():
                self._choices.choose(question.uri, view, retrieval, is_quick=question.is_quick)

    def _opened(self) -> Retrieval | None:
        """Open the current index file, if there is one: a rebuilt index is another file."""
        found = self._path.stat() if self._path.exists() else None
        identity = None if found is None else (found.st_dev, found.st_ino)
        if identity != self._identity:
            self.release()
        if self._retrieval is None and found is not None:
            self._retrieval = Retrieval(Store.open(self._path), self._files, self._report_once)
        self._identity = identity
        return self._retrieval

    def _report_other(self, path: str, _stamp: Stamp | None) -> None:
        """Have a file read again that differs from the index, as no editor may report its change.

        Only once per state: if reading fails, each question finds the file again.
        """
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


def index_path(settings: Settings, folder: Path) -> Path:
    """Return the path of a folder's index, which differs for other settings and rules.

    So editors with other settings, or another version, do not overwrite each other's index.
    """
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
