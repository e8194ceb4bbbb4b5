"""All sections of the GPU benchmark, one after the other; if one fails, the others still run."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from engine.bench.gpu.cases import Cases, Lab, sentence
from engine.bench.gpu.findings import Findings
from engine.bench.gpu.inputs import BenchInputs, Sizes
from engine.bench.gpu.machine import Machine, measure_bandwidth
from engine.bench.gpu.prefill import measure_prefill
from engine.bench.gpu.replays import ForcedSpeed, first_of_each_kind, measure_replays
from engine.bench.gpu.shapes import Shape
from engine.bench.gpu.steps import measure_programmatic, measure_steps
from engine.progress import Progress

Measure = Callable[[Lab], Any]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report."""

    name: str
    measure: Measure


class GpuBench:
    """The sections in their order, over one machine."""

    def __init__(
        self, machine: Machine, inputs: BenchInputs, progress: Progress, sizes: Sizes | None = None
    ) -> None:
        self.findings = Findings(machine.facts())
        self._machine, self._inputs, self._progress = machine, inputs, progress
        self._sizes = sizes or Sizes()

    def run(self) -> Iterator[str]:
        """Measure, and yield each section's name when it is done or has failed."""
        for section in self.sections():
            start = time.monotonic()
            self._measure(section)
            self.findings.seconds[section.name] = time.monotonic() - start
            yield section.name

    def _measure(self, section: Section) -> None:
        lab = Lab(self._machine, self._progress, self.findings.results.get("bandwidth"))
        try:
            self.findings.results[section.name] = section.measure(lab)
        except Exception as error:  # noqa: BLE001 - what fails in one section is that section's
            self.findings.failures[section.name] = sentence(error)
        self._machine.release()

    def sections(self) -> list[Section]:
        """All that the inputs allow, the most wanted first."""
        shapes, sizes = self._inputs.shapes, self._sizes
        steps = partial(measure_steps, shapes=shapes, cases=sizes.step_cases)
        return [
            self._bandwidth,
            Section("steps", steps),
            *(self._early_launch(shape) for shape in shapes if self._machine.starts_early),
            Section("prefill", partial(measure_prefill, shapes=shapes, lengths=sizes.prompts)),
            *(self._replay(shape) for shape in shapes if self._inputs.items),
        ]

    @property
    def _bandwidth(self) -> Section:
        """What steps are held against, so it comes before them."""
        numbers = self._sizes.numbers
        return Section("bandwidth", lambda lab: measure_bandwidth(lab.machine, numbers))

    def _early_launch(self, shape: Shape) -> Section:
        cases = self._sizes.kernel_cases
        measure = partial(measure_programmatic, shape=shape, cases=cases)
        return Section(f"programmatic_{shape.name}", measure)

    def _replay(self, shape: Shape) -> Section:
        return Section(f"replay_{shape.name}", partial(self._replayed, shape))

    def _replayed(self, shape: Shape, lab: Lab) -> Cases[ForcedSpeed]:
        items = first_of_each_kind(self._inputs.items, self._sizes.items)
        return measure_replays(lab, shape, items, self._inputs.load_tokenizer(lab.progress))
