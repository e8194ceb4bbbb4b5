"""A completion that somebody wants, whichever way it was asked for."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.host.principals import Principal
from engine.request import CompletionRequest


@dataclass(frozen=True, slots=True)
class Asked:
    """Who wants which completion; a newer one of the same client and document supersedes it.

    `make` is called once, on the engine's thread, as late as can be; it returns None where nothing
    is to be completed any more, and may raise a ForegramError.
    """

    principal: Principal
    client: str
    document: str
    make: Callable[[], CompletionRequest | None]
    is_prefill: bool = False  # only the prompt is read, for later
    is_prefetch: bool = False  # nobody waits for it
    has_buffers: bool = False  # the host holds some of the client's, and hears of its leaving
