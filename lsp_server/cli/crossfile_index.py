"""Indexes the trees of a cross-file set, and asks them as a language server would."""

import time
from contextlib import ExitStack
from pathlib import Path

from engine.bench.crossfile import Retrieved
from engine.bench.task_sets import CrossfileTask
from engine.request import Buffer, Snippet
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.filling import Filling
from lsp_server.repository.retrieval import Retrieval
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Store


class CrossfileIndex:
    """One index a tree, made when it is first asked for, in a folder of its own."""

    def __init__(self, folder: Path, closing: ExitStack) -> None:
        self._folder, self._closing = folder, closing
        self._retrievals: dict[Path, Retrieval] = {}

    def retrieve(self, task: CrossfileTask, opened: tuple[Buffer, ...]) -> Retrieved:
        """What the index shows for a task, of files that are not open and not its own."""
        if task.root not in self._retrievals:
            self._retrievals[task.root] = self._filled(task.root)
        view = CursorView(task.path, task.prefix.split("\n"), task.suffix.split("\n"))
        began = time.perf_counter()
        shown = self._retrievals[task.root].shown(view, frozenset(one.path for one in opened))
        ms = 1000 * (time.perf_counter() - began)
        return Retrieved(tuple(Snippet(one.path, one.text, is_open=False) for one in shown), ms)

    def _filled(self, root: Path) -> Retrieval:
        store = Store.build(self._folder / f"{len(self._retrievals)}.sqlite", root)
        self._closing.callback(store.close)
        files = SourceFiles(root)
        Filling(store, files).scan()
        return Retrieval(store, files)
