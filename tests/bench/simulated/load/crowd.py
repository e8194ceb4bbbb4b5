"""N people who type for a while at one host, and a record of their requests."""

import asyncio
import random
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle

import httpx2

from lsp_server.host.address import HostAddress
from lsp_server.settings import Settings
from tests.bench.simulated.load.host_requests import HostRequest
from tests.bench.simulated.load.seat import Seat
from tests.bench.simulated.person import Person
from tests.bench.simulated.traces import Trace
from tests.bench.simulated.typist import Typist
from tests.bench.tasks import grouped

ARRIVAL_S = 10.0  # seconds within which all come; only later requests count
_SPREAD = 0.7  # standard deviation of the logarithm of a reading time
_TICK_S = 0.02  # seconds between checks of this process's lateness
_LOOK_S = 1.0  # seconds between looks at the host's memory
_MEMORY = re.compile(r"^foregram_memory_bytes (\S+)", re.M)
_ENDING_S = 10.0  # seconds for requests under way when all stop typing


@dataclass(frozen=True, slots=True)
class CrowdRun:
    seconds: float
    requests: Sequence[Sequence[HostRequest]]  # by person
    late_s: Sequence[float]  # this process's lateness at each tick
    memory_mb: Sequence[float]  # as reported by the host
    active: float  # share of the time in which a person types


@dataclass(slots=True)
class Crowd:
    """People who each type the traces of one folder; person i uses `addresses[i]`.

    Each types for the share `active` of the time, and reads before and behind each insertion.
    """

    addresses: Sequence[HostAddress]
    metrics: HostAddress  # with a token that may read them
    settings: Settings
    traces: Sequence[Trace]
    seed: int
    active: float
    _late_s: list[float] = field(default_factory=list)
    _memory_mb: list[float] = field(default_factory=list)

    async def type_for(self, seconds: float) -> CrowdRun:
        """Let all come, type for `seconds`, and leave. Raises ServerError without a host."""
        seats = [Seat(address, self.settings) for address in self.addresses]
        try:
            for seat in seats:  # one at a time, like people who come
                await seat.take()
            began = await self._typed(seats, min(ARRIVAL_S, seconds), seconds)
        finally:
            await asyncio.gather(*(seat.leave() for seat in seats))
        counted = [
            [one for one in seat.log if began <= one.began < began + seconds] for seat in seats
        ]
        return CrowdRun(seconds, counted, self._late_s, self._memory_mb, self.active)

    async def _typed(self, seats: Sequence[Seat], arrival_s: float, seconds: float) -> float:
        """Let all type until the time is over and their requests end; return when all had come."""
        began = time.perf_counter() + arrival_s
        with suppress(TimeoutError):
            async with asyncio.timeout(arrival_s + seconds), asyncio.TaskGroup() as group:
                for number, seat in enumerate(seats):
                    group.create_task(self._person(number, seat, arrival_s))
                await asyncio.sleep(arrival_s)
                group.create_task(self._note_lateness())
                group.create_task(self._note_memory())
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING_S):
                while any(seat.is_waiting for seat in seats):
                    await asyncio.sleep(_TICK_S)
        return began

    async def _person(self, number: int, seat: Seat, arrival_s: float) -> None:
        """Come, and type one trace after the other.

        The share of people who type is constant, so some begin in the middle of reading.
        """
        draw = random.Random(f"{self.seed} {number}")  # noqa: S311 - a simulation
        typist = Typist(self.seed + number)
        await asyncio.sleep(draw.uniform(0.0, arrival_s))
        reads_first = draw.random() >= self.active
        for trace in cycle(self._traces_of(number)):
            await seat.turn_to(trace)
            if reads_first:
                await asyncio.sleep(draw.random() * self._reading_s(trace, draw))
            reads_first = False
            await typist.type(trace, seat)
            await asyncio.sleep(self._reading_s(trace, draw))

    def _reading_s(self, trace: Trace, draw: random.Random) -> float:
        """Return a random reading time; on average, typing the trace takes the share `active`."""
        own_s = sum(Person(trace.target, trace.id).own_intervals)
        share = (1 - self.active) / self.active
        return own_s * share * draw.lognormvariate(-(_SPREAD**2) / 2, _SPREAD)

    def _traces_of(self, number: int) -> Sequence[Trace]:
        """Return the traces of a folder, which is one person's while there are enough folders."""
        folders = list(grouped(self.traces, _folder).values())
        own = folders[number % len(folders)]
        start = number // len(folders) % len(own)  # people who share one begin at different traces
        return [*own[start:], *own[:start]]

    async def _note_lateness(self) -> None:
        while True:
            due = time.perf_counter() + _TICK_S
            await asyncio.sleep(_TICK_S)
            self._late_s.append(time.perf_counter() - due)

    async def _note_memory(self) -> None:
        async with self.metrics.client() as http:
            while True:
                with suppress(httpx2.HTTPError):
                    page = (await http.get("/metrics")).text
                    self._memory_mb += [float(one) / 1e6 for one in _MEMORY.findall(page)]
                await asyncio.sleep(_LOOK_S)


def _folder(trace: Trace) -> str:
    return trace.path.rpartition("/")[0]
