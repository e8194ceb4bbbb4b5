"""A trace in Vim with llama.vim: each key's requests, and the text shown meanwhile.

Follows `autoload/llama.vim` of ggml-org/llama.vim at a1c8e6e, with its default settings.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import httpx2

from tests.bench.simulated.llama_vim.answers import Answers, hint_of
from tests.bench.simulated.llama_vim.context import FimContext, local_context
from tests.bench.simulated.llama_vim.requests import fim_request, reading_request
from tests.bench.simulated.llama_vim.ring import Ring
from tests.bench.simulated.person import Action
from tests.bench.simulated.processes import cpu_s
from tests.bench.simulated.screen import Screen, Suggestion
from tests.bench.simulated.sides import Effort
from tests.bench.simulated.traces import Trace
from tests.support.polling import ServerError

_AGAIN_S = 0.1  # seconds between attempts while another request runs
_LONGEST_REST = 8  # characters behind the cursor; with more there is no request
_POLL_S = 0.05
_MOST_SAID = 200  # characters of a refusal


class _Place(NamedTuple):
    row: int
    column: int


@dataclass(slots=True)
class LlamaVimSitting:
    """The plugin in insert mode. One request runs at a time, and none is cancelled for a newer."""

    http: httpx2.AsyncClient
    process_id: int
    trace: Trace
    ring: Ring
    _before: str = ""  # the text up to the cursor
    _screen: Screen = field(init=False)
    _answers: Answers = field(default_factory=Answers)
    _job: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None
    _failure: BaseException | None = None  # of a job, which nobody awaits while keys are pressed
    _can_accept: bool = False  # the shown text
    _last_indent: int = 0
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
        """Return the cost of this sitting, without the time of the plugin and curl.

        Raises the error of a failed request.
        """
        if self._job is not None:
            self._job.cancel()
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

    def _move(self, text: str) -> None:
        self._require_success()
        self._before += text
        self._try_hint()
        self._ask()

    def _try_hint(self, request_s: float = 0.0) -> Suggestion | None:
        """Show the cached text for this place, and request the text behind it."""
        lines, place = self._lines, self._place
        answer = self._answers.find(local_context(lines, *place))
        hint = hint_of(answer, lines, *place) if answer is not None else []
        self._can_accept = bool(hint)
        suggestion = self._screen.show("\n".join(hint), request_s)
        if answer is not None:
            rest = lines[place.row][place.column :]
            shown = "\n".join(hint).lstrip("\b") + rest
            self._ask(place, shown.split("\n"))
        return suggestion

    def _ask(self, place: _Place | None = None, shown: Sequence[str] = ()) -> None:
        """Request a completion at a place, the cursor's by default (`llama#fim`)."""
        if self._job is not None:
            self._stop_timer()
            later = partial(self._ask, place, shown)
            self._timer = asyncio.get_running_loop().call_later(_AGAIN_S, later)
            return
        lines, (row, column) = self._lines, place or self._place
        context = local_context(lines, row, column, shown, self._last_indent)
        if len(context.line_suffix) > _LONGEST_REST or self._answers.holds(context.keys):
            return
        self._last_indent = context.indent
        self.ring.evict_like(lines, self._place.row)
        body = fim_request(context, self.ring.chunks, is_ahead=bool(shown))
        self._requests += 1
        self._job = asyncio.ensure_future(self._run(context, body))
        self._job.add_done_callback(self._ended)
        self.ring.look_around(self.trace.path, lines, row)

    async def _run(self, context: FimContext, body: dict[str, Any]) -> None:
        screen, began = self._screen, self._screen.now()
        answer = await self._post(body)
        if not isinstance(text := answer.get("content"), str):
            raise ServerError("llama.cpp answers /infill without a text")
        self._count(answer)
        self._answers.keep(context.keys, text)
        if not self._can_accept:
            took_s = screen.now() - began
            if (suggestion := self._try_hint(took_s)) is not None:
                suggestion.begun_s = took_s

    def _ended(self, job: asyncio.Task[None]) -> None:
        self._job = None
        if not job.cancelled():
            self._failure = self._failure or job.exception()

    async def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await self.http.post("/infill", json=body)
        except httpx2.HTTPError as error:
            raise ServerError(f"llama.cpp does not answer /infill: {error!r}") from error
        if answer.status_code != httpx2.codes.OK:
            said = " ".join(answer.text.split())[:_MOST_SAID]
            raise ServerError(f"llama.cpp refuses /infill (status {answer.status_code}): {said}")
        try:
            return dict(answer.json())
        except ValueError as error:
            raise ServerError(f"llama.cpp answers /infill without JSON: {error}") from error

    def _count(self, answer: dict[str, Any]) -> None:
        self._tokens += answer.get("timings/predicted_n", 0)
        self._prefill_s += answer.get("timings/prompt_ms", 0.0) / 1000
        self._decode_s += answer.get("timings/predicted_ms", 0.0) / 1000

    async def _settled(self) -> None:
        """Wait until nothing runs, and nothing will."""
        self._stop_timer()
        if self._job is not None:
            await asyncio.wait([self._job])
        self._stop_timer()
        self._require_success()

    def _require_success(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _is_busy(self) -> bool:
        """Whether the server works; it reads a prompt for a while after a request was dropped."""
        slots = (await self.http.get("/slots")).json()
        return isinstance(slots, list) and any(slot["is_processing"] for slot in slots)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def _lines(self) -> list[str]:
        return (self._before + self.trace.suffix).split("\n")

    @property
    def _place(self) -> _Place:
        *above, last = self._before.split("\n")
        return _Place(len(above), len(last))
