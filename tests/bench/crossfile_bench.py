"""`python -m tests.bench crossfile`: tasks with other files, open ones or those of an index."""

import argparse
import time
import uuid
from contextlib import ExitStack, closing
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.bench.report import Setting
from engine.request import Buffer, Snippet
from lsp_server.cli import command_parser
from lsp_server.cli.engine_arguments import MODEL, decoding, decoding_options, load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.indexer import scan
from lsp_server.repository.retrieval import Retrieval
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Store
from lsp_server.settings import Settings
from tests.bench.crossfile import (
    ARMS,
    AskIndex,
    Retrieved,
    crossfile_json,
    crossfile_table,
    run_crossfile,
)
from tests.bench.tasks import CrossfileTask, load_crossfile_tasks


def add_options(parser: argparse.ArgumentParser) -> None:
    options = {
        "file SET.jsonl": "a task set",
        "--trees DIR": "the packages' files; `trees` beside the set by default",
        "--count COUNT": "only COUNT tasks of each stratum",
        "--prompt-tokens N": "the longest prompt; by default that of a host on this machine",
        f"--arm {'|'.join(ARMS)} ...": "only these arms beside none: what the prompt may show of "
        "others",
    }
    command_parser.add_options(
        parser, {**options, **MODEL, **decoding_options(max_tokens=96), **command_parser.JSON}
    )


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    trees = arguments.trees or arguments.file.parent / "trees"
    tasks = load_crossfile_tasks(arguments.file, trees, arguments.count)
    arms = arguments.arm or ARMS
    cases = tracked(
        [*product(tasks, ["none", *(arm for arm in arms if arm != "none")])], "completions"
    )
    with (
        closing(load_engine(arguments, settings, ProgressBars())) as engine,
        ExitStack() as stack,
    ):
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="foregram-")))
        retrieve, wanted = _indexes(folder, stack), decoding(arguments)
        runs = [run_crossfile(engine, task, arm, wanted, retrieve) for task, arm in cases]
        setting = Setting(engine.info, wanted)
    print_figures(arguments, crossfile_json(runs, setting), crossfile_table(runs, setting))


def _indexes(folder: Path, stack: ExitStack) -> AskIndex:
    """Return a function that asks one index per tree, made in `folder` and closed with `stack`."""

    @cache
    def index_of(root: Path) -> Retrieval:
        store = Store.build(folder / f"{uuid.uuid4().hex}.sqlite", root)
        stack.callback(store.close)
        files = SourceFiles(root)
        scan(store, files, lambda _: None)
        return Retrieval(store, files)

    def retrieve(task: CrossfileTask, opened: tuple[Buffer, ...]) -> Retrieved:
        index = index_of(task.root)
        paths = frozenset(one.path for one in opened)
        view = CursorView(task.path, task.prefix.split("\n"), task.suffix.split("\n"), paths)
        began = time.perf_counter()
        shown = index.shown(view)
        ms = 1000 * (time.perf_counter() - began)
        return Retrieved(tuple(Snippet(one.path, one.text) for one in shown), ms)

    return retrieve
