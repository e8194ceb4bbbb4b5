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
    """A model that fits a card, how it is held, and the computed milliseconds of a step.

    `floor_ms` is what reading its bytes takes, `least_ms` and `most_ms` what a step behind 2,048
    tokens may take, `prompt_least_ms` and `prompt_most_ms` what reading so many anew may take.
    `is_picked`: `auto` takes it.
    """

    model: str
    form: str
    positions: int
    floor_ms: float
    least_ms: float
    most_ms: float
    prompt_least_ms: float
    prompt_most_ms: float
    is_picked: bool


class CardFits(msgspec.Struct, frozen=True):
    """What fits a card, the largest model first."""

    card: str
    fits: tuple[CardFit, ...]
