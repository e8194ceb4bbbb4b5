"""The model behind an upstream: it takes a prompt and streams what follows."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass

from engine.config import Sampling
from engine.host.upstream.channel import UpstreamChannel
from engine.host.upstream.failures import UpstreamError
from engine.host.upstream.identity import UpstreamIdentity, identify, special_tokens
from engine.host.upstream.options import UpstreamOptions
from engine.host.upstream.prompt_writer import PromptWriter, UpstreamPrompt
from engine.host.upstream.wire import BodyWriter, Delta, read_delta
from engine.model.prompt import Prompt

_LEAST_PROMPT, _MOST_PROMPT = 1024, 8192
_READ_MS = 2400.0  # for a full prompt, as of a model on this machine; most of it is read before
_PROBE_WORDS = 96  # of three or four tokens each
_PROBE_S = 30.0


@dataclass(slots=True)
class UpstreamModel:
    """Ready to generate."""

    channel: UpstreamChannel
    identity: UpstreamIdentity
    writer: PromptWriter
    bodies: BodyWriter
    tells_probabilities: bool = False

    @classmethod
    async def connect(cls, channel: UpstreamChannel, options: UpstreamOptions) -> "UpstreamModel":
        """Ask who is there, and try it. Raises ForegramError of every kind."""
        identity = await identify(channel, options)
        names = await special_tokens(channel, identity, options)
        writer = PromptWriter(names, identity.model_name)
        bodies = BodyWriter(identity.kind, identity.model_name, writer.special)
        model = cls(channel, identity, writer, bodies)
        affordable = await model._affordable_prompt()
        most = options.prompt_tokens or affordable
        model.writer.budget = min(most, identity.context // 2)
        return model

    @property
    def lost(self) -> tuple[str, ...]:
        """What users go without."""
        lost = [
            "drafts from open buffers",
            "the promise of equal text whatever is decoded beside it",
            "prompts cached by the host: the upstream's cache is its own",
            "exact token healing: an answer must repeat the piece at the cursor by itself",
            "exact prompt lengths: they are estimated",
        ]
        if not self.tells_probabilities:
            lost.append("`min_confidence`: the upstream tells no probabilities")
        return tuple(lost)

    def room(self, prompt: UpstreamPrompt) -> int:
        """The tokens that a text may have behind a prompt."""
        return max(1, self.identity.context - len(prompt.laid_out.ids))

    @asynccontextmanager
    async def generated(
        self, prompt: UpstreamPrompt, max_tokens: int, sampling: Sampling, principal: str = ""
    ) -> AsyncIterator[AsyncGenerator[Delta]]:
        """What follows a prompt; leaving the block ends the upstream's work."""
        async with AsyncExitStack() as held:
            is_repeated = False
            while True:
                body = self.bodies.body(prompt.text, max_tokens, sampling, principal)
                try:
                    events = await held.enter_async_context(self.channel.streamed(body))
                    break
                except UpstreamError as error:
                    if error.code == "upstream_refused" and self.bodies.leave_out(error.said, body):
                        continue
                    # A connection that was kept may turn out to be closed.
                    if error.code != "upstream_broken" or is_repeated:
                        raise
                    is_repeated = True
            yield await held.enter_async_context(aclosing(self._deltas(events)))

    async def _deltas(self, events: AsyncGenerator[bytes]) -> AsyncGenerator[Delta]:
        async for data in events:
            yield read_delta(data, self.channel.where)

    async def _affordable_prompt(self) -> int:
        """The tokens of a prompt that are quickly read there: a power of two, 1,024 to 8,192.

        Measured on words that nobody has asked before: the upstream may remember the others.
        """
        try:
            async with asyncio.timeout(_PROBE_S):
                ms_per_token = min([await self._reading_ms() for _ in range(2)])
        except TimeoutError:
            return _LEAST_PROMPT
        except UpstreamError as error:
            if error.code != "upstream_timeout":
                raise
            return _LEAST_PROMPT
        affordable = int(_READ_MS / ms_per_token)
        return max(_LEAST_PROMPT, min(_MOST_PROMPT, 1 << affordable.bit_length() - 1))

    async def _reading_ms(self) -> float:
        text = " ".join(secrets.token_hex(2) for _ in range(_PROBE_WORDS))
        ids = tuple(self.writer.codec.encode(text))
        prompt = UpstreamPrompt(text, Prompt(ids, b"", b"", ()))
        began = time.perf_counter()
        async with self.generated(prompt, 1, Sampling()) as deltas:
            async for delta in deltas:
                self.tells_probabilities = self.tells_probabilities or delta.has_log_probs
        return 1000 * (time.perf_counter() - began) / len(ids)
