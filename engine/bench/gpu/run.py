"""All sections of the GPU benchmark, one after the other; if one fails, the others still run."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from engine.bench.gpu.check import check_shape
from engine.bench.gpu.lab import Cases, Lab, sentence
from engine.bench.gpu.machine import measure_bandwidth
from engine.bench.gpu.operations import measure_operations
from engine.bench.gpu.replays import first_of_each_kind, measure_replays
from engine.bench.gpu.shapes import Shape
from engine.bench.gpu.steps import measure_prefill, measure_steps
from engine.bench.report import plain
from engine.bench.task_sets import ReplayItem
from engine.errors import ConfigurationError
from engine.model.tokenizer import Tokenizer

Sections = dict[str, Callable[[Lab], Cases]]  # by name, in their order
_FEW_ROWS = (1, 8, 32, 128)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured; the tests measure little."""

    rows: tuple[int, ...] = (1, 4, 8, 16, 32, 64, 128)
    contexts: tuple[int, ...] = (512, 2048, 8192)
    prompts: tuple[int, ...] = (1024, 2048, 4096)
    numbers: int = 1_500_000_000  # float32, that the bandwidth is measured with
    items: int = 30  # of each kind in a replay


QUICK = Sizes(items=8)


def bench_sections(
    shapes: Sequence[Shape],
    sizes: Sizes,
    items: Sequence[ReplayItem],
    read_tokenizer: Callable[[Lab], Tokenizer],
) -> Sections:
    """Steps, prompts and replays, the most wanted first; `items` may be none."""
    cases = [(rows, context) for context in sizes.contexts for rows in sizes.rows]
    replayed = first_of_each_kind(items, sizes.items)

    def replay(lab: Lab, shape: Shape) -> Cases:
        return measure_replays(lab, shape, replayed, read_tokenizer(lab))

    return {
        "bandwidth": partial(_bandwidth, numbers=sizes.numbers),
        "steps": partial(measure_steps, shapes=shapes, cases=cases),
        "prefill": partial(measure_prefill, shapes=shapes, lengths=sizes.prompts),
        **{f"replay_{one.name}": partial(replay, shape=one) for one in shapes if items},
    }


def profile_sections(shapes: Sequence[Shape], sizes: Sizes) -> Sections:
    """Where a step's time goes, in the operations of each shape."""
    cases = [(rows, sizes.contexts[1]) for rows in _FEW_ROWS if rows in sizes.rows]
    return {
        "bandwidth": partial(_bandwidth, numbers=sizes.numbers),
        "steps": partial(measure_steps, shapes=shapes, cases=cases),
        **{
            f"operations_{one.name}": partial(measure_operations, shape=one, cases=cases)
            for one in shapes
        },
    }


def check_sections(shapes: Sequence[Shape]) -> Sections:
    """The check of a load, for each shape."""
    return {
        f"kernels_{one.name}_{one.quantization_name}": partial(check_shape, shape=one)
        for one in shapes
    }


def _bandwidth(lab: Lab, numbers: int) -> Cases:
    """What steps are held against, so it comes before them."""
    lab.bandwidth = measure_bandwidth(lab.machine, numbers)
    return Cases((lab.bandwidth,))


@dataclass(slots=True)
class GpuBench:
    """A run over one machine, and what became of each section, by its name."""

    lab: Lab
    sections: Sections
    results: dict[str, Cases] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self) -> Iterator[str]:
        """Measure, and yield each section's name when it is done or has failed."""
        for name, measure in self.sections.items():
            start = time.monotonic()
            try:
                self.results[name] = measure(self.lab)
            except Exception as error:  # noqa: BLE001 - what fails in one section is that section's
                self.failures[name] = sentence(error)
            self.lab.machine.release()
            self.seconds[name] = time.monotonic() - start
            yield name

    def as_json(self) -> dict[str, Any]:
        """Everything."""
        return {
            "machine": self.lab.machine.facts(),
            "sections": {name: plain(result) for name, result in self.results.items()},
            "failures": self.failures,
            "section_seconds": plain(self.seconds),
        }

    def save(self, path: Path) -> None:
        """Write the object. Raises ConfigurationError where the file cannot be written."""
        try:
            path.write_text(json.dumps(self.as_json(), indent=1) + "\n", "utf-8")
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be written: {error}") from error
