"""The cases of a section: what was measured, and in sentences what could not be."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from engine.bench.gpu.machine import Machine
from engine.errors import ForegramError
from engine.progress import Progress, shown

_MOST_CHARS = 300
Case = TypeVar("Case")


class Notes(dict[str, None]):
    """Sentences in the order in which they were met, each once."""

    @contextmanager
    def catching(self, what: str) -> Iterator[None]:
        """Let a block fail; what it was and why becomes a sentence."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - kernels, drivers and libraries fail in all ways
            self[f"{what}: {sentence(error)}"] = None


def sentence(error: Exception) -> str:
    """One line that says what went wrong; our own errors are sentences already."""
    text = " ".join(str(error).split())[:_MOST_CHARS]
    return text if isinstance(error, ForegramError) else f"{type(error).__name__}: {text}"


@dataclass(frozen=True, slots=True)
class Cases(Generic[Case]):
    """The cases that were measured, and what is to be said of them and of the others."""

    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()

    def find(self, **wanted: object) -> Case | None:
        """The first case whose fields have these values, if it was measured."""
        for case in self.cases:
            if all(getattr(case, name) == value for name, value in wanted.items()):
                return case
        return None


def measure_cases(
    machine: Machine,
    title: str,
    total: int,
    measures: Iterable[tuple[str, Iterable[Case]]],
    progress: Progress,
    notes: Notes,
) -> Cases[Case]:
    """Collect from named generators, one after the other; one that fails keeps what it had found."""
    found = list[Case]()
    with shown(progress, title, total):
        for name, measured in measures:
            with notes.catching(name):
                for case in measured:
                    found.append(case)
                    progress.advance(1)
            machine.release()
    return Cases(tuple(found), tuple(notes))
