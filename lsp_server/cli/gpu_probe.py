"""Prints, as JSON, which GPU the engine chooses: a process of its own, because it loads torch."""

import sys
from collections.abc import Iterator

import msgspec

from engine.errors import ConfigurationError
from engine.model.device import DeviceChoice, accelerators, hardware_lack, triton_lack
from engine.model.gpu.card_plan import fits, pick
from engine.model.gpu.cards import PLANNED_CARDS, Card
from lsp_server.cli.gpu_check import CARDS_OPTION, CardFit, CardFits, GpuAnswer

_MOSTLY = 0.8  # of a card's memory is free where nothing of weight runs


def answer(name: str) -> GpuAnswer:
    """Choose as the engine does; empty where there is nothing to choose from."""
    if not accelerators():
        return GpuAnswer()
    try:
        choice = DeviceChoice.of(name)
    except ConfigurationError as error:
        return GpuAnswer(problem=str(error))
    if choice.is_cpu:
        return GpuAnswer(problem=choice.why)
    memory = _memory(Card.of(choice))
    return GpuAnswer(choice.name, hardware_lack(choice.device), triton_lack(), memory=memory)


def cards() -> list[CardFits]:
    """The plan for cards of all sizes."""
    return [
        CardFits(f"{card.memory_gib:.0f} GB, as an {card.name}", tuple(_fits(card)))
        for card in PLANNED_CARDS
    ]


def _fits(card: Card) -> Iterator[CardFit]:
    best = pick(card)
    for fit in fits(card):
        plan = fit.plan
        yield CardFit(
            model=fit.model,
            form=fit.form,
            weights_bytes=plan.weights,
            working_bytes=plan.working,
            cache_bytes=plan.cache,
            positions=plan.positions,
            floor_ms=fit.floor_ms,
            is_picked=fit == best,
        )


def _memory(card: Card) -> str:
    room = f"{card.free / 1e9:.1f} GB free"
    best = pick(card)
    # Most often it is our own host that holds the rest.
    beside = "" if card.free > _MOSTLY * card.memory_gib * 2**30 else "beside what runs there now, "
    return f"{room}: {beside}model auto is {best}" if best else room


if __name__ == "__main__":
    said = cards() if sys.argv[1] == CARDS_OPTION else answer(sys.argv[1])
    sys.stdout.write(msgspec.json.encode(said).decode() + "\n")
