"""`python -m tests.bench repository`: how long an index takes to fill, and a question to it; its memory."""

import argparse
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from rich.table import Table

from engine.bench.figures import percentile
from engine.errors import ConfigurationError
from lsp_server.cli.command_parser import add_json
from lsp_server.cli.terminal import print_figures
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.filling import Filling
from lsp_server.repository.languages import language_of
from lsp_server.repository.retrieval import Retrieval
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Store
from lsp_server.settings import Settings
from tests.bench.index_memory import IndexMemory, measured_memory
from tests.bench.options import add_positions

_NUM_REMEMBERED = 30  # questions after which memory is looked at


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the command line takes."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder to index")
    add_positions(parser)
    add_json(parser)


@dataclass(frozen=True, slots=True)
class RepositoryFigures:
    """Seconds of the clock and of the processor: who shares a machine waits, and works no more."""

    num_files: int
    fill_s: float
    fill_cpu_s: float
    index_mb: float
    num_questions: int
    question_ms: tuple[float, float]  # p50, p99
    question_cpu_ms: tuple[float, float]
    server_mb: IndexMemory

    def table(self) -> Table:
        """The figures for people."""
        table = Table("figure", "by the clock", "of the processor")
        table.add_row("filling the index, s", f"{self.fill_s:.1f}", f"{self.fill_cpu_s:.1f}")
        for name, number in (("p50", 0), ("p99", 1)):
            clock, cpu = self.question_ms[number], self.question_cpu_ms[number]
            table.add_row(f"a question, ms, {name}", f"{clock:.1f}", f"{cpu:.1f}")
        table.caption = (
            f"{self.num_files:,} files, an index of {self.index_mb:.0f} MB, "
            f"{self.num_questions:,} questions at places drawn by chance; the language server has "
            f"{self.server_mb.before_mb:.0f} MB, and {self.server_mb.after_mb:.0f} MB with the index "
            f"after {self.server_mb.num_questions} questions"
        )
        return table


def bench(arguments: argparse.Namespace, _settings: Settings) -> None:
    """Index a folder in a file that goes again, and ask it at many places."""
    if not arguments.folder.is_dir():
        raise ConfigurationError(f"{arguments.folder} is no folder")
    with TemporaryDirectory(prefix="foregram-") as folder:
        figures = measure_repository(
            arguments.folder.resolve(),
            Path(folder) / "index.sqlite",
            arguments.count,
            arguments.seed,
        )
    print_figures(arguments, asdict(figures), figures.table())


def measure_repository(folder: Path, index: Path, count: int, seed: int) -> RepositoryFigures:
    """Index a folder in the file `index`, and ask it at `count` places, each in a file of its own."""
    files = SourceFiles(folder)
    began, cpu_began = time.perf_counter(), time.process_time()
    store = Store.build(index, folder)
    Filling(store, files).scan()
    fill_s, fill_cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    paths, num_files = sorted(store.stamps), store.num_files
    store.close()
    reader = Store.open(index)
    retrieval = Retrieval(reader, files)
    times, cpu_times = [], []
    for view in islice(_drawn_views(files, paths, seed), count):
        began, cpu_began = time.perf_counter(), time.thread_time()
        with reader.reading():
            retrieval.shown(view)
        times.append(1000 * (time.perf_counter() - began))
        cpu_times.append(1000 * (time.thread_time() - cpu_began))
    reader.close()
    sizes = index.stat().st_size / 1e6, len(times)
    return RepositoryFigures(
        num_files,
        fill_s,
        fill_cpu_s,
        *sizes,
        _spread(times),
        _spread(cpu_times),
        measured_memory(folder, index, islice(_drawn_views(files, paths, seed), _NUM_REMEMBERED)),
    )


def _drawn_views(files: SourceFiles, paths: Iterable[str], seed: int) -> Iterator[CursorView]:
    """Cursors on lines that are not blank, each in another file, in another order each time."""
    chance = Random(seed)  # noqa: S311 - draws of places
    known = [path for path in paths if language_of(path)]
    is_any = bool(known)
    while is_any:
        is_any = False
        for path in chance.sample(known, len(known)):
            lines = (files.text(path) or "").split("\n")
            rows = [row for row, line in enumerate(lines) if line.strip()]
            if rows:
                is_any = True
                row = chance.choice(rows)
                at = chance.randrange(len(lines[row]) + 1)
                before = [*lines[:row], lines[row][:at]]
                yield CursorView(path, before, [lines[row][at:], *lines[row + 1 :]])


def _spread(values: list[float]) -> tuple[float, float]:
    return percentile(values or [0.0], 50), percentile(values or [0.0], 99)
