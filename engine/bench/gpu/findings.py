"""What a run has found, as one object and in a file, beside what we promise of a GPU."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.bench.gpu.attention import Attention
from engine.bench.gpu.cases import Cases
from engine.bench.gpu.chat import ChatSpeed
from engine.bench.gpu.invariance import Invariance, rows_different
from engine.bench.gpu.real_model import OwnText
from engine.bench.gpu.recipe_speeds import OWN, OWN_NOTE, forced_sets, recipe_speeds
from engine.bench.gpu.replays import NOTE, ForcedSet
from engine.bench.gpu.steps import StepTime
from engine.bench.gpu.stress import SplitProduct
from engine.bench.report import plain
from engine.errors import ConfigurationError

THRESHOLD_CONTEXT = 2048
_RATIOS = {"0.5b": 0.50, "1.5b": 0.70, "7b": 0.85, "32b": 0.90}
_TEXTS = ("own_text", "chat")  # sections that compare a real model's text, lookahead off and on
_SPEED_UPS = {("7b", "completion"): 2.2, ("7b", "edit"): 6.5, ("32b", "completion"): 2.2}


@dataclass(frozen=True, slots=True)
class Threshold:
    """A promise; `value` None where nothing was measured."""

    name: str
    value: float | None
    bound: float
    is_lower_better: bool = False

    @property
    def is_met(self) -> bool | None:
        """Whether it is kept, as far as we know."""
        if self.value is None:
            return None
        return self.value <= self.bound if self.is_lower_better else self.value >= self.bound

    def as_json(self) -> dict[str, Any]:
        """The fields, and the verdict."""
        kind = "at_most" if self.is_lower_better else "at_least"
        return {"name": self.name, "value": self.value, kind: self.bound, "is_met": self.is_met}


def thresholds_of(results: Mapping[str, Any], failed: Collection[str] = ()) -> list[Threshold]:
    """Judge the sections' results, by their names; `failed` are those without."""
    texts = {} if any(name in failed for name in _TEXTS) else results
    return [
        *_step_thresholds(results.get("steps")),
        *_replay_thresholds(forced_sets(results)),
        _recipe_threshold(results),
        _invariance_threshold(results.get("invariance")),
        _text_threshold(*(texts.get(name, ()) for name in _TEXTS)),
        _split_threshold(results.get("split_products", ())),
        *_attention_thresholds(results.get("attention")),
    ]


def _none(name: str, count: int | None) -> Threshold:
    """What must never happen."""
    return Threshold(name, count, 0, is_lower_better=True)


def _step_thresholds(steps: Cases[StepTime] | None) -> list[Threshold]:
    thresholds = []
    for shape, bound in _RATIOS.items():
        found = _step(steps, shape, 1)
        value = found.floor_over_step if found else None
        thresholds.append(Threshold(f"floor over step, {shape} bf16, 1 row, 2k", value, bound))
    one, many = (_step(steps, "7b", rows) for rows in (1, 32))
    value = many.step_ms / one.step_ms if one and many else None
    name = "step of 32 rows over step of 1, 7b bf16, 2k"
    return [*thresholds, Threshold(name, value, 1.10, is_lower_better=True)]


def _step(steps: Cases[StepTime] | None, shape: str, rows: int) -> StepTime | None:
    wanted = {"shape": shape, "quantization": "bf16", "rows": rows, "context": THRESHOLD_CONTEXT}
    return steps.find(**wanted) if steps else None


def _replay_thresholds(replays: Sequence[ForcedSet]) -> list[Threshold]:
    sets = {(one.shape, one.kind): one for one in replays if one.quantization == "bf16"}
    thresholds = []
    for (shape, kind), bound in _SPEED_UPS.items():
        auto = (found := sets.get((shape, kind))) and found.speed("auto")
        value = auto.over_off_of_totals if auto and auto.items else None
        thresholds.append(Threshold(f"lookahead on over off, {shape} bf16, {kind}s", value, bound))
    return thresholds


def _recipe_threshold(results: Mapping[str, Any]) -> Threshold:
    found = recipe_speeds(results).find(shape="32b", kind="completion", recipe="15,15,15", way=OWN)
    name = "auto over 15,15,15 at its own rows, 32b bf16, completions"
    return Threshold(name, found.auto_over_recipe if found else None, 1.5)


def _invariance_threshold(found: Cases[Invariance] | None) -> Threshold:
    return _none("rows that differ in company", rows_different(found) if found else None)


def _text_threshold(own: Sequence[OwnText], chat: Sequence[ChatSpeed]) -> Threshold:
    pairs = [(one.items, one.identical_items) for one in own]
    pairs += [(one.prompts, one.identical_prompts) for one in chat]
    different = sum(texts - identical for texts, identical in pairs)
    is_known = any(texts for texts, _ in pairs)
    return _none("texts that lookahead changed", different if is_known else None)


def _split_threshold(found: Sequence[SplitProduct]) -> Threshold:
    different = [one.launches_different for one in found if one.splits > 1]
    return _none("launches of a split product that differ", sum(different) if different else None)


def _attention_thresholds(attention: Attention | None) -> list[Threshold]:
    case = attention and attention.find(rows=16, context=8192)
    ratio = case.torch_over_ours if case else None
    different = attention.stress.different if attention and attention.stress.launches else None
    return [
        Threshold("attention over torch's, 16 rows, 8k", ratio, 3.0),
        _none("launches of attention that differ", different),
    ]


@dataclass(slots=True)
class Findings:
    """What became of each section, by its name."""

    facts: dict[str, str]
    results: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def thresholds(self) -> list[Threshold]:
        """What we promise, beside what was found."""
        return thresholds_of(self.results, self.failures)

    def as_json(self) -> dict[str, Any]:
        """Everything, and the thresholds."""
        return {
            "machine": self.facts,
            "thresholds": plain([threshold.as_json() for threshold in self.thresholds]),
            "sections": {name: plain(result) for name, result in self.results.items()},
            "failures": self.failures,
            "section_seconds": plain(self.seconds),
            "notes": [NOTE, OWN_NOTE],
        }

    def save(self, path: Path) -> None:
        """Write the object. Raises ConfigurationError where the file cannot be written."""
        try:
            path.write_text(json.dumps(self.as_json(), indent=1) + "\n", "utf-8")
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be written: {error}") from error
