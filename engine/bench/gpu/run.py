"""Run all sections of the GPU benchmark in turn; if one fails, the others still run."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from engine.bench.gpu.check import check_shape
from engine.bench.gpu.lab import Lab, Section
from engine.bench.gpu.machine import Bandwidth, measure_bandwidth
from engine.bench.gpu.operations import measure_operations
from engine.bench.gpu.replays import ReadTokenizer, first_of_each_kind, measure_replays
from engine.bench.gpu.shapes import Shape
from engine.bench.gpu.steps import StepTime, measure_prefill, measure_steps
from engine.bench.report import plain
from engine.bench.task_sets import ReplayItem
from engine.errors import ConfigurationError, ForegramError

Sections = dict[str, Section]  # by name, in their order
_FEW_ROWS = (1, 8, 32, 128)
_MOST_CHARS = 300  # of an error's message in the report


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much to measure; tests measure little."""

    rows: tuple[int, ...] = (1, 4, 8, 16, 32, 64, 128)
    contexts: tuple[int, ...] = (512, 2048, 8192)
    prompts: tuple[int, ...] = (1024, 2048, 4096)
    numbers: int = 1_500_000_000  # float32 to read for the bandwidth
    items: int = 30  # replayed of each kind


QUICK = Sizes(items=8)


def bench_sections(
    shapes: Sequence[Shape],
    sizes: Sizes,
    items: Sequence[ReplayItem],
    read_tokenizer: ReadTokenizer,
) -> Sections:
    """Return sections for steps, prompts and replays, in order of interest; `items` may be empty."""
    cases = [(rows, context) for context in sizes.contexts for rows in sizes.rows]
    replayed = first_of_each_kind(items, sizes.items)
    replay = partial(measure_replays, items=replayed, read_tokenizer=read_tokenizer)
    return {
        "bandwidth": partial(_bandwidth, numbers=sizes.numbers),
        **_of_each(shapes, "steps", partial(measure_steps, cases=cases)),
        **_of_each(shapes, "prefill", partial(measure_prefill, lengths=sizes.prompts)),
        **_of_each(shapes if items else (), "replay", replay),
    }


def profile_sections(shapes: Sequence[Shape], sizes: Sizes) -> Sections:
    """Return sections that time the operations of a step, for each shape."""
    cases = [(rows, sizes.contexts[1]) for rows in _FEW_ROWS if rows in sizes.rows]
    return {
        "bandwidth": partial(_bandwidth, numbers=sizes.numbers),
        **_of_each(shapes, "steps", partial(measure_steps, cases=cases)),
        **_of_each(shapes, "operations", partial(measure_operations, cases=cases)),
    }


def check_sections(shapes: Sequence[Shape]) -> Sections:
    """Return sections that run the check of a load, for each shape."""
    return _of_each(shapes, "kernels", check_shape)


def _of_each(
    shapes: Sequence[Shape], kind: str, measure: Callable[..., Iterable[object]]
) -> Sections:
    return {f"{kind} {one.full_name}": partial(measure, shape=one) for one in shapes}


def _bandwidth(lab: Lab, numbers: int) -> Iterator[Bandwidth]:
    """Measure the bandwidth first, since steps are compared with it."""
    lab.bandwidth = measure_bandwidth(lab.machine, numbers)
    yield lab.bandwidth


@dataclass(slots=True)
class GpuBench:
    """A run on one machine, and the results of its sections by name."""

    lab: Lab
    sections: Sections
    cases: dict[str, list[Any]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self) -> Iterator[str]:
        """Measure, yielding each section's name when it is done or has failed."""
        for name, measure in self.sections.items():
            start, found = time.monotonic(), self.cases.setdefault(name, [])
            try:
                found.extend(measure(self.lab))  # keeps results from before a failure
            except Exception as error:  # noqa: BLE001 - what fails in one section is that section's
                self.failures[name] = _sentence(error)
            self.lab.machine.release()
            self.seconds[name] = time.monotonic() - start
            yield name

    @property
    def step_times(self) -> list[StepTime]:
        """Return the step times of all models."""
        return [case for found in self.cases.values() for case in found if type(case) is StepTime]

    def as_json(self) -> dict[str, Any]:
        """Return all results."""
        return {
            "machine": self.lab.machine.facts(),
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
