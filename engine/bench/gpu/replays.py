"""Replays of the sets on random weights of real shapes, the human's text forced as the output."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.bench.figures import speed_of
from engine.bench.forced import ForcedReplay, forced_replay
from engine.bench.gpu.cases import Lab
from engine.bench.gpu.recipes import RECIPES
from engine.bench.gpu.shapes import Shape
from engine.bench.measured import WARM_UP
from engine.bench.task_sets import ReplayItem, grouped
from engine.config import Lookahead
from engine.model.byte_trie import ByteTrie
from engine.model.fim import find_fim_format
from engine.model.gpu.loading import warm_up
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.loading.loaded_model import LoadedModel
from engine.model.tokenizer import Tokenizer
from engine.options import EngineOptions
from engine.progress import Progress, shown
from engine.request import CompletionRequest, CompletionResult, CompletionStats

LOOKAHEADS = ("auto", *RECIPES)
_POSITIONS = 16384  # of the cache
NOTE = (
    "a step verifies the likeliest 127 of the up to 419 rows that 15,15,15 drafts, so its recipe "
    "costs less here than where it comes from; see the recipe speeds"
)


@dataclass(frozen=True, slots=True)
class ForcedSpeed:
    """A lookahead's decoding, and its ratio to none. `exact_items` wrote the target."""

    lookahead: str
    items: int
    exact_items: int
    tokens_per_s: float
    over_off_of_totals: float
    over_off_of_medians: float
    tokens_per_step: float
    rows_per_step: float


@dataclass(frozen=True, slots=True)
class ForcedSet:
    """One kind of item on one model."""

    shape: str
    quantization: str
    kind: str
    items: int
    tokens: int
    off_exact_items: int
    off_tokens_per_s: float
    speeds: tuple[ForcedSpeed, ...]

    def speed(self, lookahead: str) -> ForcedSpeed | None:
        """The figures of one lookahead."""
        return next((speed for speed in self.speeds if speed.lookahead == lookahead), None)


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """A model, how many items of each kind it plays, and the seconds that a pass over them has."""

    shape: Shape
    items: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Played:
    """An item's results, and what they were to be. `off` None where it was not asked for."""

    target: tuple[int, ...]
    on: CompletionResult
    off: CompletionResult | None


def loaded(model: GpuQwen2, tokenizer: Tokenizer, name: str) -> LoadedModel:
    """Give a model a tokenizer, as if they had come from one file."""
    return LoadedModel(
        name=name,
        fingerprint="random",
        causal_lm=model,
        tokenizer=tokenizer,
        fim=find_fim_format(tokenizer.vocabulary, name),
        trie=ByteTrie(tokenizer.vocabulary),
    )


def measure_replays(
    lab: Lab, plan: ReplayPlan, items: Sequence[ReplayItem], tokenizer: Tokenizer
) -> tuple[ForcedSet, ...]:
    """Replay on one model, in an engine of its own for each lookahead: each learns for itself."""
    causal_lm = lab.model(plan.shape, _POSITIONS)
    warm_up(causal_lm, lab.progress)  # as a host does: no completion may wait for a capture
    model = loaded(causal_lm, tokenizer, plan.shape.name)
    kinds = by_kind(items, plan.items)
    total = len(LOOKAHEADS) * sum(map(len, kinds.values()))
    with shown(lab.progress, f"replaying on {plan.shape.full_name}", total):
        played = {name: _pass(lab, model, plan, kinds, name) for name in LOOKAHEADS}
    return tuple(
        _figures(plan.shape, kind, {name: played[name][kind] for name in LOOKAHEADS})
        for kind in kinds
    )


def by_kind(items: Sequence[ReplayItem], count: int) -> dict[str, list[ReplayItem]]:
    """Return the first `count` items of each kind."""
    kinds = grouped(items, lambda item: item.kind)
    return {kind: found[:count] for kind, found in kinds.items()}


def _pass(
    lab: Lab,
    model: LoadedModel,
    plan: ReplayPlan,
    kinds: dict[str, list[ReplayItem]],
    lookahead: str,
) -> dict[str, list[_Played]]:
    """Play all items with one lookahead, and with the first one also without."""
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        options = EngineOptions(Path(folder))
        replay = forced_replay(model, options, Path(folder) / "learned", lab.progress)
        player = _Player(replay, lookahead, has_off=lookahead == LOOKAHEADS[0])
        replay.engine.complete(WARM_UP)
        played = {
            kind: player.play(items, plan.seconds, lab.progress) for kind, items in kinds.items()
        }
    del replay, player  # the next engine wants their places in the cache
    lab.machine.release()
    return played


@dataclass(frozen=True, slots=True)
class _Player:
    """Plays items, off and on in alternating order where both are wanted."""

    replay: ForcedReplay
    lookahead: str
    has_off: bool

    def play(
        self, items: Sequence[ReplayItem], seconds: float, progress: Progress
    ) -> list[_Played]:
        """Play until there is no time for more."""
        end, played = time.monotonic() + seconds, list[_Played]()
        for number, item in enumerate(items):
            if time.monotonic() < end:
                played.append(self._item(item, off_first=number % 2 == 0))
            progress.advance(1)
        return played

    def _item(self, item: ReplayItem, *, off_first: bool) -> _Played:
        lookaheads = [self.lookahead, "off"] if self.has_off else [self.lookahead]
        order = reversed(lookaheads) if off_first else lookaheads
        results = {lookahead: self._complete(item, lookahead) for lookahead in order}
        target = tuple(self.replay.model.target)
        return _Played(target, results[self.lookahead], results.get("off"))

    def _complete(self, item: ReplayItem, lookahead: str) -> CompletionResult:
        decoding = CompletionRequest("", "", lookahead=Lookahead.parse(lookahead))
        self.replay.engine.forget_completions()
        return self.replay.engine.complete(self.replay.request(item, decoding))


def _figures(shape: Shape, kind: str, played: dict[str, list[_Played]]) -> ForcedSet:
    pairs = [(one.target, one.off) for one in played[LOOKAHEADS[0]] if one.off is not None]
    off = [result.stats for _, result in pairs]
    return ForcedSet(
        shape=shape.name,
        quantization=shape.quantization_name,
        kind=kind,
        items=len(off),
        tokens=sum(one.tokens for one in off),
        off_exact_items=sum(result.token_ids == target for target, result in pairs),
        off_tokens_per_s=speed_of(off).tokens_per_second,
        speeds=tuple(_forced_speed(name, played[name], off) for name in LOOKAHEADS),
    )


def _forced_speed(
    lookahead: str, played: Sequence[_Played], off: Sequence[CompletionStats]
) -> ForcedSpeed:
    """Compare on the items that both had time for."""
    count = min(len(played), len(off))
    on = [one.on.stats for one in played[:count]]
    speed, steps = speed_of(on), sum(one.steps for one in on)
    ratio = speed.over(speed_of(off[:count]))
    return ForcedSpeed(
        lookahead=lookahead,
        items=count,
        exact_items=sum(one.on.token_ids == one.target for one in played[:count]),
        tokens_per_s=speed.tokens_per_second,
        over_off_of_totals=ratio.of_totals,
        over_off_of_medians=ratio.of_medians,
        tokens_per_step=sum(one.tokens for one in on) / max(steps, 1),
        rows_per_step=sum(one.rows for one in on) / max(steps, 1),
    )
