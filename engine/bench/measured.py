"""Measure one request with lookahead off and with lookahead on."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from engine.bench.task_sets import ReplayItem, SetItem
from engine.config import Lookahead, StopRules
from engine.engine import Engine
from engine.request import CompletionRequest, Done

OFF = Lookahead(mode="off")
_Item = TypeVar("_Item", bound=SetItem)

# Not an item of the set, since the drafters learn from it.
WARM_UP = CompletionRequest(
    prefix="def mean(values):\n    total = sum(values)\n",
    suffix="\n",
    stop=StopRules(max_tokens=16),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of a request."""

    id: str
    off: Done
    on: Done

    @property
    def is_identical(self) -> bool:
        """Whether both have the same tokens, text and finish reason."""
        return (
            self.off.token_ids == self.on.token_ids
            and self.off.text == self.on.text
            and self.off.finish_reason == self.on.finish_reason
        )


Runs = Mapping[str, list[Measured]]  # items by kind: completions, edits


def measure(
    engine: Engine, items: Iterable[_Item], ask: Callable[[_Item], CompletionRequest]
) -> Iterator[tuple[_Item, Measured]]:
    """Decode each item off and on, in alternating order, as the second run finds warmer caches."""
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
    """Add the item's text and buffers to `decoding`, which holds only the options of a run."""
    return replace(
        decoding,
        prefix=item.prefix,
        suffix=item.suffix,
        path=item.path,
        open_buffers=item.open_buffers,
    )


def run_replay(engine: Engine, items: Iterable[ReplayItem], decoding: CompletionRequest) -> Runs:
    """Measure every item, and return the results by kind."""
    runs: dict[str, list[Measured]] = {}
    for item, run in measure(engine, items, partial(request_for, decoding=decoding)):
        runs.setdefault(item.kind, []).append(run)
    return runs
