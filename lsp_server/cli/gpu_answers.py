"""What the process that knows torch tells the one that does not."""

import msgspec

CARDS_OPTION = "--cards"  # instead of a device's name


class GpuAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The GPU that a device name selects, what our kernels lack there, or why it selects none.

    `memory` says what is free and which model `auto` takes there. All are empty where torch sees no
    GPU.
    """

    gpu: str = ""
    lack: str = ""
    problem: str = ""
    memory: str = ""


class CardFits(msgspec.Struct, frozen=True):
    """What fits a card, the largest model first, and what `auto` takes there."""

    card: str
    fits: tuple[str, ...]
    picked: str
