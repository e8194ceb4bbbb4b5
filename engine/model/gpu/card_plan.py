"""Which models fit a GPU's memory, how they are held, and what a step of each takes.

Step times are computed, not measured: see `step_model`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.errors import NoSpaceError
from engine.model.device import GPU_QUANTIZATIONS, DeviceChoice
from engine.model.gpu.cards import Card, card_named
from engine.model.gpu.held_forms import FORMS_OF_FILES, HELD_FORMS, HeldForm, file_bytes
from engine.model.gpu.memory_plan import MemoryPlan
from engine.model.gpu.step_model import ExpectedStep, expected_step
from engine.model.gpu.step_work import StepWork
from engine.model.known_shapes import QWEN_SHAPES
from engine.model.model_config import ModelConfig
from engine.model_names import DEFAULT_MODEL

_PLANNED = ("RTX 4060", "RTX 4070", "RTX 4060 Ti", "RTX 4090", "RTX A6000", "A100", "H200")
PLANNED_CARDS = tuple(map(card_named, _PLANNED))  # of 8 to 140 GB

# What `auto` takes: with 2 to 3 tokens a step, a line is there in a quarter of a second.
_GOOD_STEP_MS = 25
_GOOD_POSITIONS = 16_384  # the prompts of a few files
_LEFT_OUT = {"3b"}  # its licence forbids commercial use
_PICKED: frozenset[HeldForm] = frozenset(("bfloat16", "fp8"))  # int4 costs quality


@dataclass(frozen=True, slots=True)
class Fit:
    """A model that fits: its alias, how it is held, tokens of cache, and a step's duration.

    `form` is a value of the setting `dtype`, or what a model's file holds.
    """

    model: str
    form: HeldForm
    positions: int
    step: ExpectedStep

    @property
    def work(self) -> StepWork:
        """Of a step of one row, as `step` is."""
        return StepWork(QWEN_SHAPES[self.model], self.form)

    def __str__(self) -> str:
        return (
            f"{self.model} in {self.form}, {self.positions:,} tokens of context, "
            f"{self.step.middle:.0f} ms a step"
        )


def fits(card: Card) -> list[Fit]:
    """What fits a card: the largest model first, of each the most bits first."""
    return list(_fits(card))


def pick(card: Card, dtype: str | None = None) -> Fit | None:
    """What `model = "auto"` takes: of what is good to type with the largest model, in most bits.

    `dtype` leaves no other way to hold it. None where nothing fits.
    """
    found = [one for one in fits(card) if one.model not in _LEFT_OUT]
    allowed = {dtype} if dtype else _PICKED
    found = [one for one in found if one.form in allowed]
    good = (one for one in found if one.step.middle <= _GOOD_STEP_MS and _is_roomy(one))
    return next(good, found[-1] if found else None)


def picked(choice: DeviceChoice, dtype: str | None) -> tuple[str, str | None]:
    """The model's name and dtype for the device that was chosen."""
    if choice.is_cpu:
        return DEFAULT_MODEL, dtype
    fit = pick(Card.of(choice), dtype)
    return (fit.model, fit.form) if fit else (DEFAULT_MODEL, dtype)


def _is_roomy(fit: Fit) -> bool:
    return fit.positions >= _GOOD_POSITIONS


def _fits(card: Card) -> Iterator[Fit]:
    forms = HELD_FORMS if card.has_kernels else ("bfloat16",)
    for name, config in reversed(QWEN_SHAPES.items()):
        for form in forms:
            try:
                plan = _memory_plan(config, form, card.free)
            except NoSpaceError:
                continue
            yield Fit(name, form, plan.positions, expected_step(StepWork(config, form), card))


def _memory_plan(config: ModelConfig, form: HeldForm, free: int) -> MemoryPlan:
    if form in FORMS_OF_FILES:
        return MemoryPlan.make(config, "float", free, None, file_bytes(config, form))
    return MemoryPlan.make(config, GPU_QUANTIZATIONS[form], free, None)
