"""One request decoded with lookahead off, with lookahead on, and by the peers: what they took.

A request without a text says for a whole run how text is decoded.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from typing import TypeVar

from engine.bench.task_sets import SetItem
from engine.config import Lookahead, StopRules
from engine.engine import Engine
from engine.request import CompletionRequest, CompletionResult

T = TypeVar("T", bound=SetItem)

OFF = Lookahead(mode="off")
_MIN_PEER_TOKENS = 2  # a peer's first token belongs to its prefill

# Not an item of the set: what a drafter remembers of it must not help a measured one.
WARM_UP = CompletionRequest(
    prefix="def mean(values):\n    total = sum(values)\n",
    suffix="\n",
    stop=StopRules(max_tokens=16),
)


@dataclass(frozen=True, slots=True)
class PeerRun:
    """What a peer took for one prompt. `tokens` were decoded within `decode_ms`, prefill apart."""

    tokens: int
    decode_ms: float

    @property
    def ms_per_token(self) -> float:
        """Milliseconds per decoded token; NaN where there is none."""
        return self.decode_ms / self.tokens if self.tokens else nan


@dataclass(frozen=True, slots=True)
class Peer:
    """Another engine with the same weights.

    `decode` writes so many tokens greedily behind the prompt's ids, whatever they are. `build` says
    which build of it this is, and what of the processor it uses.
    """

    decode: Callable[[Sequence[int], int], PeerRun]
    build: str


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of one request."""

    id: str
    off: CompletionResult
    on: CompletionResult
    # By name; empty where there was too little to write.
    peers: Mapping[str, PeerRun] = field(default_factory=dict)

    @property
    def is_identical(self) -> bool:
        """The same tokens, the same text, ended for the same reason."""
        return (
            self.off.token_ids == self.on.token_ids
            and self.off.text == self.on.text
            and self.off.finish_reason == self.on.finish_reason
        )

    @property
    def speed_up(self) -> float | None:
        """Decoding speed on over off; None where one of them wrote nothing."""
        off, on = self.off.cost.tokens_per_second, self.on.cost.tokens_per_second
        return on / off if off and on else None


@dataclass(frozen=True, slots=True)
class Bench:
    """An engine and its peers, ready to be measured side by side."""

    engine: Engine
    peers: Mapping[str, Peer] = field(default_factory=dict)  # by the names in reports

    def measure(
        self, items: Iterable[T], ask: Callable[[T], CompletionRequest]
    ) -> Iterator[tuple[T, Measured]]:
        """Decode what `ask` wants of each item with its lookahead, without, and by the peers.

        The order alternates: the second of two runs finds warmer caches. A request whose lookahead
        is off is decoded once.
        """
        self.engine.complete(WARM_UP)
        for number, item in enumerate(items):
            request = ask(item)
            off, on = self._run_pair(request, off_first=number % 2 == 0)
            peers = self._ask_peers(request, on.cost.tokens)
            yield item, Measured(item.id, off, on, peers)

    def _run_pair(
        self, request: CompletionRequest, *, off_first: bool
    ) -> tuple[CompletionResult, CompletionResult]:
        self.engine.forget_completions()
        without = replace(request, lookahead=OFF)
        if request == without:
            off = self.engine.complete(without)
            return off, off
        on = None if off_first else self.engine.complete(request)
        off = self.engine.complete(without)
        return off, on or self.engine.complete(request)

    def _ask_peers(self, request: CompletionRequest, num_tokens: int) -> dict[str, PeerRun]:
        if not self.peers or num_tokens < _MIN_PEER_TOKENS:
            return {}
        prompt_ids = self.engine.prompt(request).ids
        return {name: peer.decode(prompt_ids, num_tokens) for name, peer in self.peers.items()}


def request_for(item: SetItem, decoding: CompletionRequest) -> CompletionRequest:
    """Ask for the text at the cursor as an editor would that has the item's buffers open."""
    return replace(
        decoding,
        prefix=item.prefix,
        suffix=item.suffix,
        path=item.path,
        open_buffers=item.open_buffers,
    )


def without_rules(max_tokens: int) -> StopRules:
    """Only end tokens and `max_tokens` end a completion."""
    return StopRules(
        max_tokens=max_tokens,
        suffix=False,
        indentation=False,
        repetition=False,
        max_blank_lines=max_tokens,
    )
