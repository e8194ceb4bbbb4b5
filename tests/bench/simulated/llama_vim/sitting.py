"""A trace in Vim with llama.vim: each key's requests, and the text shown meanwhile.

Follows `autoload/llama.vim` of ggml-org/llama.vim at a1c8e6e, with its default settings.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.bench.simulated.llama_sitting import LlamaSitting, Place
from tests.bench.simulated.llama_vim.answers import Answers, hint_of
from tests.bench.simulated.llama_vim.context import FimContext, local_context
from tests.bench.simulated.llama_vim.requests import fim_request
from tests.bench.simulated.screen import Suggestion

_AGAIN_S = 0.1  # seconds between attempts while another request runs
_LONGEST_REST = 8  # characters behind the cursor; with more there is no request


@dataclass(slots=True)
class LlamaVimSitting(LlamaSitting):
    """The plugin in insert mode. One request runs at a time, and none is cancelled for a newer."""

    _answers: Answers = field(default_factory=Answers)
    _timer: asyncio.TimerHandle | None = None
    _can_accept: bool = False  # the shown text
    _last_indent: int = 0

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

    def _ask(self, place: Place | None = None, shown: Sequence[str] = ()) -> None:
        """Request a completion at a place, the cursor's by default (`llama#fim`)."""
        if self._jobs:
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
        self._start(self._run(context, body))
        self.ring.look_around(self.trace.path, lines, row)

    async def _run(self, context: FimContext, body: dict[str, Any]) -> None:
        screen, began = self._screen, self._screen.now()
        self._answers.keep(context.keys, self._taken(await self._post(body)))
        if not self._can_accept:
            took_s = screen.now() - began
            if (suggestion := self._try_hint(took_s)) is not None:
                suggestion.begun_s = took_s

    async def _settled(self) -> None:
        self._stop_timer()
        if self._jobs:
            await asyncio.wait(self._jobs)
        self._stop_timer()
        self._require_success()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
