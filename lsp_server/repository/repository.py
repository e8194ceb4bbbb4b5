"""The repository of one editor: an index for each workspace folder, asked beside the event loop."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from engine.host.protocol import MAX_SNIPPETS, RepositorySnippet
from lsp_server.privacy.hidden_files import innermost
from lsp_server.repository.definition_choice import Shown
from lsp_server.repository.folder_index import FolderIndex
from lsp_server.repository.indexer import IndexReport
from lsp_server.repository.question import OnProgress, Question, Sendable
from lsp_server.repository.question_thread import QuestionThread
from lsp_server.settings import Settings

_LONGEST_PATH = 1_000  # characters
_PATIENCE_S = 0.05  # that a request waits; what is found later serves the next one
_LATE = "no answer came in time"


class Repository:
    """Indexes the folders that it is told of, and says what they show for a cursor."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._report = partial(_tell, on_progress)
        self._indexes: dict[Path, FolderIndex] = {}
        self._settings: tuple[object, ...] | None = None
        self._turn = asyncio.Lock()  # one folder is filled after the other
        self._thread = QuestionThread()
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
        """These files changed, came or went."""
        by_folder: dict[Path, list[str]] = {}
        for path in paths:
            if (folder := innermost(path, self._indexes)) is not None:
                by_folder.setdefault(folder, []).append(path.relative_to(folder).as_posix())
        for folder, inner in by_folder.items():
            self._indexes[folder].upkeep.changed(inner)

    def look(self) -> None:
        """Files may have changed that nobody tells of."""
        for index in self._indexes.values():
            index.upkeep.look()

    async def shown(self, question: Question) -> Sendable:
        """What fits the cursor best; where that takes long, what did the last time.

        Another prompt than the last one would be read from its start.
        """
        folder = innermost(question.path, self._indexes)
        if folder is None:
            return tuple
        index = self._indexes[folder]
        is_stuck = self._thread.busy_s > _PATIENCE_S  # then nobody waits for it once more
        answered = self._thread.ask(question.uri, partial(index.answer, question))
        is_answered = False
        with suppress(TimeoutError):
            is_answered = await asyncio.wait_for(
                asyncio.shield(answered), 0 if is_stuck else _PATIENCE_S
            )
        self._is_late = not is_answered
        return partial(self._sendable, folder, index.last(question.uri))

    def _sendable(self, folder: Path, found: Sequence[Shown]) -> tuple[RepositorySnippet, ...]:
        """What may be sent now: a request may have waited for its host since."""
        index = self._indexes.get(folder)
        if index is None:
            return ()
        fitting = (one for one in found[:MAX_SNIPPETS] if len(one.path) <= _LONGEST_PATH)
        return tuple(
            RepositorySnippet(one.path, one.text) for one in fitting if index.may_send(one)
        )

    async def filled(self) -> None:
        """Wait until all indexes are in step."""
        for index in self._indexes.values():
            await index.upkeep.done()

    def close(self) -> None:
        """The editor leaves."""
        for index in self._indexes.values():
            self._leave(index)
        self._indexes.clear()
        self._thread.close()

    def _leave(self, index: FolderIndex) -> None:
        index.close()
        self._thread.ask(f"\0{id(index)}", index.release)


def _tell(on_progress: OnProgress, report: IndexReport | None) -> None:
    on_progress(*(0, 0, "") if report is None else (report.done, report.total, report.note))


def _is_project(folder: Path) -> bool:
    """Whether a folder may be somebody's repository: a home folder and the system's are not."""
    return folder.is_dir() and folder not in (Path.home(), *Path.home().parents)
