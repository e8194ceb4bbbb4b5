"""The outcome and times of each request to the host: a link that keeps account."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from engine.config import StopRules
from engine.host.protocol import CompleteEvent, Failed
from engine.request import Done, FinishReason
from lsp_server.documents.anchor import Anchor
from lsp_server.host.client import HostRefusedError
from lsp_server.host.link import ANY_LENGTH, HostLink

Outcome = Literal["answered", "superseded", "refused", "failed"]

_FULL_SHARE = "quota"  # code of an answer 429
_WITHDRAWN = ("superseded", "cancelled")  # codes of the host: a newer request replaced it


@dataclass(slots=True)
class HostRequest:
    """A request for text; times are seconds since `began`, a time of `time.perf_counter`."""

    began: float
    is_ahead: bool  # nobody waits for it: it reads a prompt, or computes a likely next request
    outcome: Outcome | None = None  # None while it runs
    first_text_s: float | None = None
    ended_s: float | None = None
    tokens: int = 0
    trouble: str = ""  # the error code of a refused or failed request

    def hear(self, event: CompleteEvent) -> None:
        if isinstance(event, Failed):
            self.end("superseded" if event.code in _WITHDRAWN else "failed", event.code)
            return
        if event.text and self.first_text_s is None:
            self.first_text_s = time.perf_counter() - self.began
        if isinstance(event, Done):
            self.tokens = event.cost.tokens
            is_whole = event.finish_reason != FinishReason.CANCELLED
            self.end("answered" if is_whole else "superseded")

    def refuse(self, code: str) -> None:
        """Note the host's error code; a full quota is an outcome of its own."""
        self.end("refused" if code == _FULL_SHARE else "failed", code)

    def end(self, outcome: Outcome, code: str = "") -> None:
        """End the request; only the first end counts."""
        if self.outcome is None:
            self.outcome, self.ended_s = outcome, time.perf_counter() - self.began
            self.trouble = code if outcome in ("refused", "failed") else ""


class CountingLink(HostLink):
    def __init__(self, log: list[HostRequest], *places: Any, **rules: Any) -> None:
        super().__init__(*places, **rules)
        self._log = log

    @property
    def is_shared(self) -> bool:
        """Return True, as for the host of a team."""
        return True

    async def complete(
        self,
        anchor: Anchor,
        stop: StopRules = ANY_LENGTH,
        *more: Any,
        is_prefetch: bool = False,
        **how: Any,
    ) -> AsyncGenerator[CompleteEvent]:
        noted = HostRequest(time.perf_counter(), is_prefetch or not stop.max_tokens)
        self._log.append(noted)
        completing = super().complete(anchor, stop, *more, is_prefetch=is_prefetch, **how)
        try:
            async with aclosing(completing) as events:
                async for event in events:
                    noted.hear(event)
                    yield event
            noted.end("failed", "no_end")
        except (asyncio.CancelledError, GeneratorExit):
            noted.end("superseded")  # the person went on typing
            raise
        except HostRefusedError as error:
            noted.refuse(error.problem.code)
            raise
        except Exception:
            noted.end("failed", "host_gone")
            raise
