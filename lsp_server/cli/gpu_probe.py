"""Prints, as JSON, which GPU the engine chooses: a process of its own, because it loads torch."""

import sys

import msgspec

from engine.errors import ConfigurationError
from engine.model.device import DeviceChoice, accelerators, hardware_lack
from engine.model.gpu.card_plan import CARDS, Card, fits, pick
from lsp_server.cli.gpu_answers import CARDS_OPTION, CardFits, GpuAnswer


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
    return GpuAnswer(choice.name, hardware_lack(choice.device), memory=_memory(Card.of(choice)))


def cards() -> list[CardFits]:
    """The plan for cards of all sizes."""
    return [
        CardFits(f"{gigabytes} GB, as an {card.name}", tuple(map(str, fits(card))), str(pick(card)))
        for gigabytes, card in CARDS.items()
    ]


def _memory(card: Card) -> str:
    room = f"{card.free / 1e9:.1f} GB free"
    best = pick(card)
    return f"{room}: model auto is {best} (computed, not measured)" if best else room


if __name__ == "__main__":
    said = cards() if sys.argv[1] == CARDS_OPTION else answer(sys.argv[1])
    sys.stdout.write(msgspec.json.encode(said).decode() + "\n")
