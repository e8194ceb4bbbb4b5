"""`foregram doctor --cards`: which models fit which GPUs, and what `auto` takes. It loads torch."""

import sys

import msgspec

from engine.model.gpu.fit import PLANNED_CARDS, Card, Fit, fits, pick

_HEAD = (
    f"    {'model':<5} {'held as':<9} {'weights':>8} {'buffers':>8} {'cache':>8} {'room for':>17}"
    f" {'floor':>9}\n"
)
_LEGEND = """\
* model = auto
Q8_0 and Q4_K_M are forms of a model's file, the others values of dtype.
The floor is how long reading takes: the weights, and the keys and values of 2,048 tokens, at the
bandwidth that the card's maker states. No step takes less; `foregram bench gpu` measures how much more.
"""


def show_cards(*, as_json: bool) -> int:
    """Print what fits cards of all sizes, the largest model first."""
    if as_json:
        cards = [
            {"card": _name(card), "picked": pick(card), "fits": [*fits(card)]}
            for card in PLANNED_CARDS
        ]
        sys.stdout.write(msgspec.json.encode(cards).decode() + "\n")
        return 0
    sys.stdout.write(_HEAD)
    for card in PLANNED_CARDS:
        sys.stdout.write(f"{_name(card)}\n")
        best = pick(card)
        sys.stdout.writelines(
            f"  {'*' if fit == best else ' '} {_line(fit)}\n" for fit in fits(card)
        )
    sys.stdout.write(_LEGEND)
    return 0


def _name(card: Card) -> str:
    return f"{card.memory_gib:.0f} GB, as an {card.name}"


def _line(fit: Fit) -> str:
    plan = fit.plan
    sizes = " ".join(f"{one / 1e9:5.1f} GB" for one in (plan.weights, plan.working, plan.cache))
    context = f"{plan.positions:,} tokens"
    return f"{fit.model:<5} {fit.form:<9} {sizes} {context:>17} {fit.floor_ms:6.1f} ms"
