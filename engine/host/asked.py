"""From a message and the buffers that are held to the request that an engine completes."""

from collections.abc import Callable

from engine.config import Lookahead, Sampling, StopRules
from engine.host.buffers import HeldBuffer
from engine.host.protocol import CompleteRequest
from engine.request import CompletionRequest


def request_maker(
    message: CompleteRequest,
    prefix: str,
    suffix: str,
    held: HeldBuffer,
    others: tuple[HeldBuffer, ...],
) -> Callable[[], CompletionRequest]:
    """Check what was asked now; join the other buffers' texts on the engine's thread.

    Raises ConfigurationError.
    """
    bounds = message.bounds
    lookahead = Lookahead.parse(message.lookahead)
    sampling = Sampling(temperature=message.sampling.temperature, seed=message.sampling.seed)
    stop = StopRules(
        max_tokens=bounds.max_tokens or 1,
        single_line=bounds.single_line,
        time_limit_s=None if bounds.time_limit_ms is None else bounds.time_limit_ms / 1000,
    )
    # The state after an accept has a slot of its own, lest it spoil that of the state before.
    cache_key = "\0".join([message.workspace, message.uri, "next" if message.overlay else ""])

    def make() -> CompletionRequest:
        return CompletionRequest(
            prefix=prefix,
            suffix=suffix,
            path=held.path,
            open_buffers=tuple(other.as_buffer for other in others),
            workspace=f"{message.client}\0{message.workspace}",
            cache_key=cache_key,
            layout=message.layout,
            lookahead=lookahead,
            sampling=sampling,
            stop=stop,
        )

    return make
