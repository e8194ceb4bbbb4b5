"""Launches over the same numbers, again and again: a race shows as other bits."""

from dataclasses import dataclass

import torch

from engine.bench.gpu.machine import Machine, Work

_BATCH = 50  # launches of one graph


@dataclass(frozen=True, slots=True)
class Stress:
    """Launches over the same numbers, and how many of them wrote other bits."""

    launches: int
    different: int


def stressed(machine: Machine, launch: Work, out: torch.Tensor, launches: int) -> Stress:
    """Launch without a pause, and count on the device what differs from the first `out`.

    `launch` also resets what it adds to, and spoils what the one before left in its scratch: a sum
    that was read too early would else be the right one, of the launch before.
    """
    launch()
    expected = _bits(out).clone()
    different = torch.zeros((), dtype=torch.int64, device=machine.device)

    def batch() -> None:
        for _ in range(_BATCH):
            launch()
            different.add_((_bits(out) != expected).any())

    replay = machine.captured(batch)
    different.zero_()
    rounds = max(1, launches // _BATCH)
    for _ in range(rounds):
        replay()
    return Stress(rounds * _BATCH, int(different))


def _bits(numbers: torch.Tensor) -> torch.Tensor:
    """The same memory as integers: NaN equals itself, and -0 is not 0."""
    return numbers.view(torch.int32 if numbers.element_size() == 4 else torch.int16)
