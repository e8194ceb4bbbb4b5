"""The cases of a section: what was measured, and in sentences what could not be."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from engine.bench.gpu.machine import Bandwidth, Machine
from engine.bench.gpu.shapes import Shape, random_model
from engine.errors import ForegramError
from engine.model.gpu.qwen2 import GpuQwen2
from engine.progress import Progress, shown
from kernels.operations import operations_for

_MOST_CHARS = 300
Case = TypeVar("Case")


def sentence(error: Exception) -> str:
    """One line that says what went wrong; our own errors are sentences already."""
    text = " ".join(str(error).split())[:_MOST_CHARS]
    return text if isinstance(error, ForegramError) else f"{type(error).__name__}: {text}"


@dataclass(frozen=True, slots=True)
class Cases(Generic[Case]):
    """The cases that were measured, and what is to be said of them and of the others."""

    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()


def cases_of(result: object) -> tuple[Any, ...]:
    """The cases of a section's result; none where it is of another form."""
    if isinstance(result, Cases):
        return result.cases
    return result if isinstance(result, tuple) else ()


class Lab:
    """What one section measures with: a machine, who is told how far it is, and its notes."""

    def __init__(
        self, machine: Machine, progress: Progress, bandwidth: Bandwidth | None = None
    ) -> None:
        self.machine, self.progress, self._bandwidth = machine, progress, bandwidth
        self._notes: dict[str, None] = {}

    @property
    def bandwidth(self) -> Bandwidth:
        """What its section found. Raises ValueError where that has failed.

        Ask before `cases`: there every failure is a note.
        """
        if self._bandwidth is None:
            raise ValueError("the bandwidth was not measured")
        return self._bandwidth

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences in the order in which they were met, each once."""
        return tuple(self._notes)

    def note(self, text: str) -> None:
        """Say something of what is measured."""
        self._notes[text] = None

    def model(self, shape: Shape, positions: int) -> GpuQwen2:
        """A random model that runs as one whose check has found nothing: kernels may start early."""
        device, early = self.machine.device, self.machine.starts_early
        operations = operations_for(device, programmatic=early)
        return random_model(shape, positions, self.machine, operations)

    @contextmanager
    def catching(self, what: str) -> Iterator[None]:
        """Let a block fail; what it was and why becomes a note."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - kernels, drivers and libraries fail in all ways
            self.note(f"{what}: {sentence(error)}")

    def cases(
        self, title: str, total: int, measures: Iterable[tuple[str, Iterable[Case]]]
    ) -> Cases[Case]:
        """Collect from named generators, one after the other; one that fails keeps what it found."""
        found = list[Case]()
        with shown(self.progress, title, total):
            for name, measured in measures:
                with self.catching(name):
                    for case in measured:
                        found.append(case)
                        self.progress.advance(1)
                self.machine.release()
        return Cases(tuple(found), self.notes)
