"""One request decoded with lookahead off and with lookahead on: what they took.

A request without a text says for a whole run how text is decoded.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from engine.bench.task_sets import SetItem
from engine.config import Lookahead, StopRules
from engine.engine import Engine
from engine.request import CompletionRequest, CompletionResult

T = TypeVar("T", bound=SetItem)

OFF = Lookahead(mode="off")

# Not an item of the set: what a drafter remembers of it must not help a measured one.
WARM_UP = CompletionRequest(
    prefix="def mean(values):\n    total = sum(values)\n",
    suffix="\n",
    stop=StopRules(max_tokens=16),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of one request."""

    id: str
    off: CompletionResult
    on: CompletionResult

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


def measure(
    engine: Engine, items: Iterable[T], ask: Callable[[T], CompletionRequest]
) -> Iterator[tuple[T, Measured]]:
    """Decode what `ask` wants of each item with its lookahead, and without.

    The order alternates: the second of two runs finds warmer caches. A request whose lookahead
    is off is decoded once.
    """
    engine.complete(WARM_UP)
    for number, item in enumerate(items):
        engine.forget_completions()
        request = ask(item)
        without = replace(request, lookahead=OFF)
        if request == without or number % 2 == 0:
            off = engine.complete(without)
            on = off if request == without else engine.complete(request)
        else:
            on = engine.complete(request)
            off = engine.complete(without)
        yield item, Measured(item.id, off, on)


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
