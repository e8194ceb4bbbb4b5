"""A trace beside an editor plugin of llama.cpp: its requests, and their cost."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx2

from tests.bench.simulated.llama_vim.requests import reading_request
from tests.bench.simulated.llama_vim.ring import Ring
from tests.bench.simulated.person import Action
from tests.bench.simulated.processes import cpu_s
from tests.bench.simulated.screen import Screen
from tests.bench.simulated.sides import Effort
from tests.bench.simulated.traces import Trace
from tests.support.polling import ServerError

_POLL_S = 0.05
_MOST_SAID = 200  # characters of a refusal


class Place(NamedTuple):
    """A cursor."""

    row: int
    column: int


@dataclass(slots=True)
class LlamaSitting:
    """The plugin while a person types. A subclass has the rules for what is asked and shown."""

    http: httpx2.AsyncClient
    process_id: int
    trace: Trace
    ring: Ring
    _before: str = ""  # the text up to the cursor
    _screen: Screen = field(init=False)
    _jobs: set[asyncio.Task[None]] = field(default_factory=set)
    _failure: BaseException | None = None  # of a job, which nobody awaits while keys are pressed
    _requests: int = 0
    _tokens: int = 0
    _prefill_s: float = 0.0
    _decode_s: float = 0.0
    _cpu_s: float = 0.0

    async def begin(self) -> None:
        """Open the files, read all chunks as in a pause, and complete at the approach.

        Raises ServerError if the server refuses that.
        """
        for buffer in reversed(self.trace.open_buffers):
            self.ring.enter(buffer.path, buffer.text.split("\n"), 0)
        self._before = self.trace.before
        self._screen = Screen(lambda: 0.0, "")
        lines, place = self._lines, self._place
        self.ring.enter(self.trace.path, lines, place.row)
        self.ring.look_around(self.trace.path, lines, place.row)
        while self.ring.update():
            pass
        await self._post(reading_request(self.ring.chunks))
        self._ask()
        await self._settled()
        self._requests = self._tokens = 0
        self._prefill_s = self._decode_s = 0.0
        self._cpu_s = cpu_s(self.process_id)

    def watch(self, screen: Screen) -> None:
        self._screen = screen
        self._move(self.trace.approach)

    def press(self, action: Action) -> None:
        """Move the cursor behind the written text. Raises the error of a failed request."""
        if action.kind == "erase":
            self._before = self._before[:-1]
        self._move(action.text)

    async def effort(self) -> Effort:
        """Return the cost of this sitting, without the time of the plugin and its client.

        Raises the error of a failed request.
        """
        for job in self._jobs:
            job.cancel()
        await self._settled()
        while await self._is_busy():
            await asyncio.sleep(_POLL_S)
        return Effort(
            host_cpu_s=cpu_s(self.process_id) - self._cpu_s,
            prefill_s=self._prefill_s,
            decode_s=self._decode_s,
            tokens=self._tokens,
            requests=self._requests,
        )

    def _ask(self) -> None:
        """Ask for a text at the cursor, as the plugin does after each key."""
        raise NotImplementedError

    def _move(self, text: str) -> None:
        self._require_success()
        self._before += text
        self._ask()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        job = asyncio.ensure_future(work)
        self._jobs.add(job)
        job.add_done_callback(self._ended)

    def _ended(self, job: asyncio.Task[None]) -> None:
        self._jobs.discard(job)
        if not job.cancelled():
            self._failure = self._failure or job.exception()

    async def _post(self, body: dict[str, Any]) -> Any:
        try:
            answer = await self.http.post("/infill", json=body)
        except httpx2.HTTPError as error:
            raise ServerError(f"llama.cpp does not answer /infill: {error!r}") from error
        if answer.status_code != httpx2.codes.OK:
            said = " ".join(answer.text.split())[:_MOST_SAID]
            raise ServerError(f"llama.cpp refuses /infill (status {answer.status_code}): {said}")
        try:
            return answer.json()
        except ValueError as error:
            raise ServerError(f"llama.cpp answers /infill without JSON: {error}") from error

    def _taken(self, answer: object) -> str:
        """Count an answer's cost; return its text."""
        if not isinstance(answer, dict) or not isinstance(text := answer.get("content"), str):
            raise ServerError("llama.cpp answers /infill without a text")
        timings = answer.get("timings", {})

        def told(name: str) -> float:
            return float(answer.get(f"timings/{name}", timings.get(name, 0)))

        self._tokens += int(told("predicted_n"))
        self._prefill_s += told("prompt_ms") / 1000
        self._decode_s += told("predicted_ms") / 1000
        return text

    async def _settled(self) -> None:
        """Wait until nothing runs, and nothing will."""
        while self._jobs:
            await asyncio.wait(self._jobs)
        self._require_success()

    def _require_success(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _is_busy(self) -> bool:
        """Whether the server works; it reads a prompt for a while after a request was dropped."""
        slots = (await self.http.get("/slots")).json()
        return isinstance(slots, list) and any(slot["is_processing"] for slot in slots)

    @property
    def _lines(self) -> list[str]:
        return (self._before + self.trace.suffix).split("\n")

    @property
    def _place(self) -> Place:
        *above, last = self._before.split("\n")
        return Place(len(above), len(last))
