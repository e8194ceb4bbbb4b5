"""Who assists a person, one trace after the other, and what that cost."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from tests.bench.simulated.traces import Trace
from tests.bench.simulated.typist import Assistant, TypedTrace, Typist


@dataclass(frozen=True, slots=True)
class Effort:
    """What assisting cost, from the first key to the last."""

    editor_cpu_s: float = 0.0  # of the processor, beside the editor
    host_cpu_s: float = 0.0  # of the processor, where the model runs
    prefill_s: float = 0.0  # the model read prompts
    decode_s: float = 0.0  # the model wrote
    tokens: int = 0  # that it wrote, whether anybody saw them or not
    requests: int = 0  # of the editor
    empty: Mapping[str, int] = field(default_factory=dict)  # answers without a text, by reason

    @property
    def cpu_s(self) -> float:
        """Seconds of the processor."""
        return self.editor_cpu_s + self.host_cpu_s


NO_EFFORT = Effort()


class Sitting(Assistant, Protocol):
    """An assistant of one trace."""

    async def effort(self) -> Effort:
        """End all that still runs; what this sitting has cost."""


class Side(Protocol):
    """One of those that are compared. It rests while another one works."""

    @property
    def name(self) -> str:
        """For people."""

    def sitting(self, trace: Trace) -> AbstractAsyncContextManager[Sitting]:
        """Open the trace's files; ready when the block begins."""

    def rest(self) -> None:
        """Take no processor time until the next `wake`."""

    def wake(self) -> None:
        """Go on."""


@dataclass(frozen=True, slots=True)
class AssistedTrace:
    """A trace that was typed, and what it cost."""

    typed: TypedTrace
    effort: Effort


async def take_turns(
    sides: Sequence[Side], traces: Iterable[Trace], typist: Typist
) -> Mapping[str, Sequence[AssistedTrace]]:
    """Type every trace beside every side; who begins changes from trace to trace."""
    runs: dict[str, list[AssistedTrace]] = {side.name: [] for side in sides}
    for number, trace in enumerate(traces):
        first = number % len(sides)
        for side in (*sides[first:], *sides[:first]):
            side.wake()
            async with side.sitting(trace) as sitting:
                typed = await typist.type(trace, sitting)
                runs[side.name].append(AssistedTrace(typed, await sitting.effort()))
            side.rest()
    return runs
