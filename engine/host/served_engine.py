"""The engine as the host needs it. Importing this loads no torch."""

from collections.abc import Callable
from typing import Protocol

from engine.completer import Completer
from engine.request import CompletionRequest


class ServedEngine(Completer, Protocol):
    """A loaded engine that tells what it holds, and reads prompts ahead."""

    @property
    def pool_tokens(self) -> int:
        """Tokens that drafts are found in."""
        ...

    @property
    def kv_bytes(self) -> int:
        """Memory of the cached prompts."""
        ...

    def prefill(self, request: CompletionRequest, cancelled: Callable[[], bool]) -> None:
        """Read a prompt for later."""
        ...
