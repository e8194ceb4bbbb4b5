"""Run all sections of the GPU benchmark in turn; if one fails, the others still run."""

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from engine.bench.gpu.machine import Machine, measure_bandwidth
from engine.bench.gpu.shapes import Shape, random_model
from engine.bench.gpu.steps import measure_prefill, measure_steps, step_ms
from engine.bench.report import plain
from engine.errors import ConfigurationError, ForegramError
from engine.model.gpu.selfcheck.first_load import settle
from engine.model.gpu.selfcheck.verdict import Verdict
from engine.progress import Progress
from kernels.operations import PORTABLE

Section = Callable[[Machine, Progress], Iterable[object]]  # yields data classes, rows of a table
Sections = dict[str, Section]  # by name, in their order
_MOST_CHARS = 300  # of an error's message in the report
_CHECKED_LAYERS = 2  # a model's layers are alike, so two stand for all
_CHECKED_POSITIONS = 20_480  # room for four texts of 4,200 tokens
_CHECKED_CONTEXT = 512  # tokens, as in the table of kernels/README.md


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much to measure; tests measure little."""

    rows: tuple[int, ...] = (1, 4, 8, 16, 32, 64, 128)
    contexts: tuple[int, ...] = (512, 2048, 8192)
    prompts: tuple[int, ...] = (1024, 2048, 4096)
    numbers: int = 1_500_000_000  # float32 to read for the bandwidth


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """The bandwidth of the machine's memory."""

    read_gb_per_s: float


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A model of two layers: the time of a step, and the result of its check."""

    model: str
    ms_of_least_rows: float
    ms_of_most_rows: float
    found: str
    verdict: Verdict


def bench_sections(shapes: Sequence[Shape], sizes: Sizes) -> Sections:
    """Return sections for the steps and prompts of each shape."""
    cases = [(rows, context) for context in sizes.contexts for rows in sizes.rows]
    return {
        "bandwidth": partial(bandwidth, numbers=sizes.numbers),
        **of_each(shapes, "steps", partial(measure_steps, cases=cases)),
        **of_each(shapes, "prefill", partial(measure_prefill, lengths=sizes.prompts)),
    }


def of_each(
    shapes: Sequence[Shape], kind: str, measure: Callable[..., Iterable[object]]
) -> Sections:
    """Return a section of each shape; `measure` also gets the shape."""
    return {f"{kind} {one.full_name}": partial(measure, shape=one) for one in shapes}


def bandwidth(machine: Machine, _progress: Progress, numbers: int) -> Iterator[Bandwidth]:
    """Measure the bandwidth first, since steps are compared with it."""
    machine.gb_per_s = measure_bandwidth(machine, numbers)
    yield Bandwidth(machine.gb_per_s)


def check_shape(machine: Machine, progress: Progress, shape: Shape) -> Iterator[CheckedModel]:
    """Check and time a model of this shape here, without keeping the verdict for loads."""
    operations = None if machine.has_kernels else PORTABLE
    shallow = replace(shape, config=replace(shape.config, num_layers=_CHECKED_LAYERS))
    model = random_model(shallow, _CHECKED_POSITIONS, machine, operations)
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        model, verdict = settle(model, Path(folder), progress)
    buckets = (model.row_buckets[0], model.row_buckets[-1])
    least, most = (step_ms(machine, model, rows, _CHECKED_CONTEXT) for rows in buckets)
    yield CheckedModel(shape.full_name, least, most, verdict.sentence, verdict)


@dataclass(slots=True)
class GpuBench:
    """A run on one machine, and the results of its sections by name."""

    machine: Machine
    sections: Sections
    progress: Progress
    cases: dict[str, list[Any]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self) -> Iterator[str]:
        """Measure, yielding each section's name when it is done or has failed."""
        for name, measure in self.sections.items():
            start, found = time.monotonic(), self.cases.setdefault(name, [])
            try:
                found.extend(measure(self.machine, self.progress))  # keeps rows before a failure
            except Exception as error:  # noqa: BLE001 - what fails in one section is that section's
                self.failures[name] = _sentence(error)
            self.machine.release()
            self.seconds[name] = time.monotonic() - start
            yield name

    def as_json(self) -> dict[str, Any]:
        """Return all results."""
        return {
            "machine": self.machine.facts(),
            "sections": plain(self.cases),
            "failures": self.failures,
            "section_seconds": self.seconds,
        }

    def save(self, path: Path) -> None:
        """Write all results as JSON. Raises ConfigurationError if the file cannot be written."""
        try:
            path.write_text(json.dumps(self.as_json(), indent=1) + "\n", "utf-8")
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be written: {error}") from error

    def tables(self, name: str) -> Iterator[Table | str]:
        """Yield a section's results, a column for each field, and its error if it failed."""
        title = f"{name} ({self.seconds[name]:.0f} s)"
        if rows := [asdict(case) for case in self.cases[name]]:
            yield _table(title, rows)
        if name in self.failures:
            yield f"{title}: {self.failures[name]}"

    def failures_table(self) -> Table:
        """Return a table of the failed sections and their errors."""
        rows = [{"section": name, "why": why} for name, why in self.failures.items()]
        return _table("SECTIONS THAT FAILED", rows)


def _sentence(error: Exception) -> str:
    """Return one line on an error; our own errors are sentences already."""
    text = " ".join(str(error).split())[:_MOST_CHARS]
    return text if isinstance(error, ForegramError) else f"{type(error).__name__}: {text}"


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title=title)
    shown = [name for name, value in rows[0].items() if isinstance(value, (str, int, float))]
    for name in shown:
        is_number = isinstance(rows[0][name], (int, float))
        table.add_column(name.replace("_", " "), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in shown))
    return table


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
