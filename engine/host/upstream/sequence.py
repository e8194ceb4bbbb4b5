"""One completion that an upstream generates, from its prompt to its last chunk."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from engine.growing_text import GrowingText
from engine.host.upstream.channel import UpstreamError
from engine.host.upstream.upstream_model import UpstreamModel
from engine.host.upstream.wire import Delta
from engine.model.prompt import Prompt
from engine.request import (
    Chunk,
    CompletionRequest,
    Cost,
    Done,
    FinishReason,
    TokenText,
)

_REST_S = 0.1  # seconds to read events after the text, so that the connection can be reused
_REASONS = {"length": FinishReason.MAX_TOKENS}


class RepeatMissedError(Exception):
    """The answer does not begin with the piece cut off the prompt, so it cannot be shown."""


@dataclass(slots=True, eq=False)
class UpstreamSequence:
    """Requests a completion, and another if the answer lacks the piece cut off the prompt."""

    model: UpstreamModel
    request: CompletionRequest
    on_chunk: Callable[[Chunk], None]
    is_cancelled: Callable[[], bool]
    on_end: Callable[["UpstreamSequence"], None]  # called when the text ends
    is_done: bool = False  # set once the upstream's work has ended, too
    is_waiting: bool = False
    one_row_ms: float = 0.0  # unknown: the upstream tells of no steps
    error: Exception | None = None
    _prompt: Prompt = field(init=False)
    _text: GrowingText = field(init=False)
    _end_names: Collection[str] = ()  # special tokens that end the text
    _owed: str = ""  # with which the rest of the answer must begin
    _deltas: list[Delta] = field(init=False)  # the text so far, and what may follow it
    _began: float = field(default_factory=time.perf_counter)
    _read: float = 0.0  # when the prompt was read
    _ended: float = 0.0  # 0 while it runs

    def __post_init__(self) -> None:
        self._prepare(is_healed=True)

    async def run(self) -> None:
        """Generate until the text ends. Never raises; cancelling it ends the text."""
        sampling = self.request.sampling
        if sampling.avoids_suffix and not sampling.temperature:  # it would write the same again
            self._text.finish(FinishReason.SUFFIX)
            self.close()
            self.is_done = True
            return
        try:
            try:
                await self._generate()
            except RepeatMissedError:
                self._prepare(is_healed=False)
                await self._generate()
        except asyncio.CancelledError:
            self._text.finish(self._cancelled)
            self.close()
        except Exception as error:  # noqa: BLE001 - `result` raises it
            self.error = None if self._ended else error
            self.close()
        self.is_done = True

    def close(self) -> None:
        """Report the end once; the upstream's work ends after that."""
        if not self._ended:
            self._ended = time.perf_counter()
            self._text.send()
            self.on_end(self)

    def result(self) -> Done:
        """Return the result. Raises the completion's error, and ValueError before its end."""
        if self.error is not None:
            raise self.error
        text = self._text
        if text.finish_reason is None:
            raise ValueError("the completion has not ended")
        has_log_probs = any(one.has_log_probs for one in self._deltas)
        log_probs = tuple(text.log_probs) if has_log_probs else ()
        return Done(text.text, text.finish_reason, self._stats(), log_probs=log_probs)

    def _prepare(self, *, is_healed: bool) -> None:
        request = self.request
        self._prompt = self.model.writer.write(request, is_healed=is_healed)
        self._text = GrowingText(request, self.on_chunk)
        self._end_names = self.model.writer.ends(request)
        self._owed, self._deltas = self._prompt.dropped.decode(), []

    async def _generate(self) -> None:
        room = self.model.room(self._prompt)
        max_tokens = min(self.request.stop.max_tokens or 1, room)
        sampling, principal = self.request.sampling, self.request.principal
        text = self.model.generated(self._prompt, max_tokens, sampling, principal)
        async with aclosing(text) as deltas:
            async for delta in deltas:
                self._read = self._read or time.perf_counter()
                if self._takes_last(delta):
                    if delta.finish_reason:
                        await self._take_rest(deltas)
                    self.close()
                    return
        told = f"{self.model.channel.name} stopped in the middle of a completion"
        raise UpstreamError("upstream_broken", told)

    def _takes_last(self, delta: Delta) -> bool:
        """Take a delta; return whether the text has ended. Raises RepeatMissedError."""
        if self.is_cancelled():
            self._text.finish(self._cancelled)
        elif not self.request.stop.max_tokens:  # only the prompt was to be read
            self._text.finish(FinishReason.PREFILLED)
        else:
            self._deltas.append(delta)
            for token in delta.tokens:
                if self._ends(token) or self._text.is_ended:
                    break
            if delta.finish_reason and not self._text.is_ended:
                self._finish(_REASONS.get(delta.finish_reason, FinishReason.END_TOKEN))
            self._text.send()
        return self._text.is_ended

    def _ends(self, token: TokenText) -> bool:
        """Add a token's text up to a special token; return whether there is one."""
        starts = [start for name in self._end_names if (start := token.text.find(name)) >= 0]
        before = token.text[: min(starts)] if starts else token.text
        said = self._unrepeated(before)
        if before or not starts:
            self._text.grow(said, token.log_prob)
        if starts and not self._text.is_ended:
            self._finish(FinishReason.FIM_TOKEN)
        return bool(starts)

    def _finish(self, reason: FinishReason) -> None:
        if self._owed:
            raise RepeatMissedError
        self._text.finish(reason)

    def _unrepeated(self, said: str) -> str:
        num_shared = min(len(said), len(self._owed))
        if said[:num_shared] != self._owed[:num_shared]:
            raise RepeatMissedError
        self._owed = self._owed[num_shared:]
        return said[num_shared:]

    @property
    def _cancelled(self) -> FinishReason:
        """The reason for a cancelled request; one that only reads its prompt is no completion."""
        return FinishReason.CANCELLED if self.request.stop.max_tokens else FinishReason.PREFILLED

    async def _take_rest(self, deltas: AsyncGenerator[Delta]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_REST_S):
                async for delta in deltas:
                    self._deltas.append(delta)

    def _stats(self) -> Cost:
        prompt = self._prompt
        read = self._read or self._ended
        num_tokens = sum(one.num_tokens for one in self._deltas)
        prompt_tokens = max((one.prompt_tokens for one in self._deltas), default=0)
        reused_tokens = max((one.reused_tokens for one in self._deltas), default=0)
        return Cost(
            tokens=num_tokens,
            steps=num_tokens,  # the upstream's own steps are unknown
            rows=num_tokens,
            prompt_tokens=prompt_tokens or len(prompt.ids),
            # Principals share the upstream's cache, so its hits could reveal others' prompts.
            reused_tokens=0 if self.request.principal else reused_tokens,
            prefill_ms=1000 * (read - self._began),
            decode_ms=1000 * (self._ended - read),
            accepted_by_source={"model": num_tokens},
            neighbour_tokens=prompt.neighbour_tokens,
            neighbours=prompt.neighbours,
            num_open=len(self.request.open_buffers),
            repository_tokens=prompt.repository_tokens,
            repository=prompt.repository,
            avoids_suffix=self.request.sampling.avoids_suffix,
        )
