"""The repository of one editor: an index for each workspace folder, asked beside the event loop."""

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from engine.host.protocol import MAX_SNIPPETS, RepositorySnippet
from lsp_server.privacy.hidden_files import innermost
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.indexer import IndexJob, IndexReport
from lsp_server.repository.kept_choice import KeptChoices
from lsp_server.repository.question import OnProgress, Question
from lsp_server.repository.retrieval import Retrieval, Shown
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Store, StoreError
from lsp_server.repository.upkeep import Upkeep
from lsp_server.settings import Settings

_LOG = logging.getLogger(__name__)
_LONGEST_PATH = 1_000  # characters
_PATIENCE_S = 0.05  # that a request waits; what is found later serves the next one


class Repository:
    """Indexes the folders that it is told of, and says what they show for a cursor."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._indexes: dict[Path, _FolderIndex] = {}
        self._settings: tuple[object, ...] | None = None
        self._turn = asyncio.Lock()  # one folder is filled after the other
        self._thread = ThreadPoolExecutor(1, "repository")

    def enter(self, roots: Iterable[Path], settings: Settings) -> None:
        """Index these folders, and no others. Needs a running event loop."""
        wanted = settings.repository_globs
        choice = wanted, settings.allow_secret_files, settings.cache_folder
        folders = set(roots) if wanted is not None and settings.enable else set()
        is_other = choice != self._settings
        gone = set(self._indexes) if is_other else self._indexes.keys() - folders
        self._settings = choice
        for folder in gone:
            self._indexes.pop(folder).close()
        for folder in folders - self._indexes.keys():
            if _is_project(folder):
                self._indexes[folder] = _FolderIndex(
                    folder, settings, self._on_progress, self._turn
                )

    def changed(self, paths: Iterable[Path]) -> None:
        """These files changed, came or went."""
        by_folder: dict[Path, list[str]] = {}
        for path in paths:
            if (folder := innermost(path, self._indexes)) is not None:
                by_folder.setdefault(folder, []).append(path.relative_to(folder).as_posix())
        for folder, inner in by_folder.items():
            self._indexes[folder].upkeep.changed(inner)

    async def shown(self, question: Question) -> tuple[RepositorySnippet, ...]:
        """What fits the cursor best; nothing where that takes long."""
        folder = innermost(question.path, self._indexes)
        if folder is None:
            return ()
        index = self._indexes[folder]
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self._thread, partial(index.shown, question))
        with suppress(TimeoutError):
            found = await asyncio.wait_for(asyncio.shield(asked), _PATIENCE_S)
            return tuple(
                RepositorySnippet(one.path, one.text)
                for one in found[:MAX_SNIPPETS]
                if len(one.path) <= _LONGEST_PATH
            )
        return ()

    async def filled(self) -> None:
        """Wait until all indexes are in step."""
        for index in self._indexes.values():
            await index.upkeep.done()

    def close(self) -> None:
        """The editor leaves."""
        for index in self._indexes.values():
            index.close()
        self._indexes.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)


class _FolderIndex:
    """The index of a folder. `shown` is for one thread, all else for the event loop's."""

    def __init__(
        self, folder: Path, settings: Settings, on_progress: OnProgress, turn: asyncio.Lock
    ) -> None:
        self._folder = folder
        allowed, globs = settings.allow_secret_files, settings.repository_globs or ()
        self._path = index_path(settings, folder)
        self._files = SourceFiles(folder, allowed=allowed, globs=globs)
        self._choices = KeptChoices()
        self._store: Store | None = None
        self._identity: tuple[int, int] | None = None  # of the file that is open
        job = IndexJob(str(folder), str(self._path), allowed, globs)
        self.upkeep = Upkeep(job, partial(_tell, on_progress), turn)
        self.upkeep.begin()

    def shown(self, question: Question) -> Sequence[Shown]:
        """Ask the index, if it is there."""
        try:
            return self._shown(question)
        except StoreError as error:
            _LOG.info("%s", error)
            self._store = None  # it is opened again, once it has been made anew
            return ()

    def _shown(self, question: Question) -> Sequence[Shown]:
        store = self._opened()
        if store is None:
            return ()
        line = question.lines[question.row]
        before = [*question.lines[: question.row], line[: question.character]]
        behind = [line[question.character :], *question.lines[question.row + 1 :]]
        view = CursorView(self._inner(question.path), before, behind)
        opened = (one for one in question.opened if one.is_relative_to(self._folder))
        excluded = frozenset(map(self._inner, opened))
        retrieval = Retrieval(store, self._files)
        return self._choices.shown(
            question.uri,
            view,
            excluded,
            lambda: retrieval.shown(view, excluded),
            may_show=retrieval.is_shown,
            is_quick=question.is_quick,
        )

    def _opened(self) -> Store | None:
        """The index as it stands there now: what was made anew is another file."""
        found = self._path.stat() if self._path.exists() else None
        identity = None if found is None else (found.st_dev, found.st_ino)
        if identity != self._identity:
            if self._store is not None:
                self._store.close()
            self._store, self._identity = None, identity
        if self._store is None and identity is not None:
            self._store = Store.open(self._path)
        return self._store

    def _inner(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    def close(self) -> None:
        """Nobody asks any more."""
        self.upkeep.close()


def _tell(on_progress: OnProgress, report: IndexReport | None) -> None:
    on_progress(*(0, 0, "") if report is None else (report.done, report.total, report.note))


def index_path(settings: Settings, folder: Path) -> Path:
    """Where the index of a folder is: another one where other files count as secret."""
    key = "\0".join([str(folder), *settings.allow_secret_files])
    name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return settings.cache_folder / "repository" / f"{name}.sqlite"


def _is_project(folder: Path) -> bool:
    """Whether a folder may be somebody's repository: a home folder and the system's are not."""
    return folder.is_dir() and folder not in (Path.home(), *Path.home().parents)
