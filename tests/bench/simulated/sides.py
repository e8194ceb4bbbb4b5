"""The assistants that are compared, one trace after the other, and their costs."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from tests.bench.simulated.processes import resume, stop
from tests.bench.simulated.traces import Trace
from tests.bench.simulated.typist import Assistant, TypedTrace, Typist


@dataclass(frozen=True, slots=True)
class Effort:
    """The cost of assisting, from the first key to the last."""

    editor_cpu_s: float = 0.0  # processor time beside the editor
    host_cpu_s: float = 0.0  # processor time where the model runs
    prefill_s: float = 0.0  # the model reads prompts
    decode_s: float = 0.0  # the model writes
    tokens: int = 0  # tokens written, whether anybody saw them or not
    requests: int = 0  # requests of the editor
    empty: Mapping[str, int] = field(default_factory=dict)  # answers without text, by reason

    @property
    def cpu_s(self) -> float:
        return self.editor_cpu_s + self.host_cpu_s


class Sitting(Assistant, Protocol):
    async def effort(self) -> Effort:
        """End all requests; return the cost of this sitting."""


class Side(Protocol):
    """An assistant to compare. It rests while another one works."""

    @property
    def name(self) -> str:
        """The name for reports."""

    def sitting(self, trace: Trace) -> AbstractAsyncContextManager[Sitting]:
        """Open the trace's files; they are ready when the block begins."""

    @property
    def process_ids(self) -> Sequence[int]:
        """The processes that could slow down another side."""


@dataclass(frozen=True, slots=True)
class AssistedTrace:
    typed: TypedTrace
    effort: Effort


async def take_turns(
    sides: Sequence[Side], traces: Iterable[Trace], typist: Typist
) -> Mapping[str, Sequence[AssistedTrace]]:
    """Type every trace beside every side; the first side changes from trace to trace."""
    runs: dict[str, list[AssistedTrace]] = {side.name: [] for side in sides}
    for number, trace in enumerate(traces):
        first = number % len(sides)
        for side in (*sides[first:], *sides[:first]):
            resume(side.process_ids)
            async with side.sitting(trace) as sitting:
                typed = await typist.type(trace, sitting)
                runs[side.name].append(AssistedTrace(typed, await sitting.effort()))
            stop(side.process_ids)
    return runs
