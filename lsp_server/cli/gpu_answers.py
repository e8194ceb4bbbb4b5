"""What the process that knows torch tells the one that does not."""

import msgspec

CARDS_OPTION = "--cards"  # instead of a device's name


class GpuAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The GPU that a device name selects, what our kernels lack there, or why it selects none.

    `lack` is the GPU's own, `triton_lack` what can be installed. `memory` says what is free and
    which model `auto` takes there. All are empty where torch sees no GPU.
    """

    gpu: str = ""
    lack: str = ""
    triton_lack: str = ""
    problem: str = ""
    memory: str = ""


class CardFit(msgspec.Struct, frozen=True):
    """A model that fits a card, how it is held, and what it takes of the memory.

    The cache has room for `positions` tokens. `floor_ms` is how long a step takes at the least, behind
    2,048 of them: so long is all read that it needs. `is_picked`: `auto` takes it.
    """

    model: str
    form: str
    weights_bytes: int
    working_bytes: int
    cache_bytes: int
    positions: int
    floor_ms: float
    is_picked: bool


class CardFits(msgspec.Struct, frozen=True):
    """What fits a card, the largest model first."""

    card: str
    fits: tuple[CardFit, ...]
