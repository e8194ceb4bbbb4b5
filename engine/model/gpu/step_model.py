"""How long a step should take on a card: arithmetic from shapes and data sheets, no measurement.

    kernel = max(bytes / memory, bytes through the cache / cache, instructions / issue,
                 operations / tensor cores) + gap + latency
    step = their sum

Gaps and latencies are those that others report for kernels in a CUDA graph, from the lucky to the
unlucky. Instructions were counted in the machine code. `foregram bench gpu` measures what this only
computes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from engine.model.gpu.cards import Card
from engine.model.gpu.held_forms import PlannedProduct, products_of
from engine.model.gpu.step_work import US, AttentionWork, Busy, ProductWork, StepWork, step_bytes
from engine.model.token_tree import MAX_READ_ROWS
from kernels.batch_attention import TAILS

_MS = 1e3
_EARLY_ARCHITECTURE = 90  # from which on kernels may start before the one ahead has ended


@dataclass(frozen=True, slots=True)
class Overheads:
    """Microseconds beside the bytes of a kernel."""

    gap: float  # between two kernels
    product: float
    split: float  # for the sums of a split product to meet
    attend: float
    combine: float
    run: float  # for each further branch that a program of attention takes
    choose: float
    other: float  # commit, embedding, walk and both copies together
    busy: Busy


LUCKY = Overheads(1.0, 1.5, 1.0, 3.0, 2.0, 1.2, 5.0, 14.0, Busy(0.93, 0.75, 0.7))
UNLUCKY = Overheads(1.3, 2.5, 2.0, 5.0, 3.5, 2.0, 9.0, 14.0, Busy(0.90, 0.5, 0.4))
# Where kernels start early.
EARLY = Overheads(0.4, 0.8, 1.0, 2.5, 1.5, 1.2, 5.0, 14.0, Busy(0.93, 0.75, 0.7))


class PortableOverheads(NamedTuple):
    """Of PyTorch, operation by operation: microseconds of each, and the share of the bandwidth."""

    operation: float
    filled: float


PORTABLE_LUCKY, PORTABLE_UNLUCKY = PortableOverheads(5.0, 0.8), PortableOverheads(10.0, 0.55)
_PORTABLE_OPERATIONS_OF_LAYER, _PORTABLE_OPERATIONS = 78, 111  # counted


@dataclass(frozen=True, slots=True)
class ExpectedStep:
    """Milliseconds: `floor` is what reading the bytes takes, `least` and `most` with overheads."""

    floor: float
    least: float
    most: float

    @property
    def middle(self) -> float:
        """Between the least and the most."""
        return (self.least + self.most) / 2


def expected_step(work: StepWork, card: Card) -> ExpectedStep:
    """Compute how long a step takes on `card`, by our kernels or, where those do not run, PyTorch."""
    if not card.has_kernels:
        return portable_step(work, card)
    lucky = _lucky(card)
    least, most = (
        _layers_us(work, card, overheads) + _outside_us(work, card, overheads)
        for overheads in (lucky, UNLUCKY)
    )
    return ExpectedStep(_floor_ms(work, card), least / _MS, most / _MS)


def reading_step(work: StepWork, card: Card) -> ExpectedStep:
    """Of a piece of a prompt, by our kernels: without the head, nor what it reads."""
    least, most = (
        _layers_us(work, card, overheads) + overheads.other for overheads in (_lucky(card), UNLUCKY)
    )
    read = step_bytes(work) - sum(_heads_bytes(work))
    return ExpectedStep(_MS * read / card.bandwidth, least / _MS, most / _MS)


def expected_prompt(work: StepWork, card: Card) -> ExpectedStep:
    """Of reading a new prompt of `work.context` tokens, by our kernels."""
    rows = MAX_READ_ROWS
    ends = [*range(rows, work.context, rows), work.context]
    pieces = [reading_step(replace(work, rows=rows, context=end), card) for end in ends]
    return ExpectedStep(
        sum(one.floor for one in pieces),
        sum(one.least for one in pieces),
        sum(one.most for one in pieces),
    )


def portable_step(work: StepWork, card: Card) -> ExpectedStep:
    """By PyTorch."""
    least, most = (
        _portable_us(work, card, overheads) for overheads in (PORTABLE_LUCKY, PORTABLE_UNLUCKY)
    )
    return ExpectedStep(_floor_ms(work, card), least / _MS, most / _MS)


def _lucky(card: Card) -> Overheads:
    return EARLY if card.architecture >= _EARLY_ARCHITECTURE else LUCKY


def _floor_ms(work: StepWork, card: Card) -> float:
    return _MS * step_bytes(work) / card.bandwidth


def _layers_us(work: StepWork, card: Card, overheads: Overheads) -> float:
    attention = work.config.num_layers * _attention_us(work, card, overheads)
    products = sum(
        one.count * _product_us(one, work.rows, card, overheads)
        for one in products_of(work.config, work.form)
        if not one.is_head
    )
    return attention + products


def _outside_us(work: StepWork, card: Card, overheads: Overheads) -> float:
    """The head, and what stands around the layers."""
    head = sum(
        _product_us(one, work.rows, card, overheads)
        for one in products_of(work.config, work.form)
        if one.is_head
    )
    return head + overheads.choose + overheads.other


def _heads_bytes(work: StepWork) -> Iterator[float]:
    return (one.num_bytes for one in products_of(work.config, work.form) if one.is_head)


def _product_us(product: PlannedProduct, rows: int, card: Card, overheads: Overheads) -> float:
    work = ProductWork.of(product, rows, card)
    us = max(work.memory_us(card, overheads.busy), work.other_us(card, overheads.busy))
    return us + overheads.gap + overheads.product + (overheads.split if work.tile.splits > 1 else 0)


def _attention_us(work: StepWork, card: Card, overheads: Overheads) -> float:
    attention = AttentionWork.of(work)
    runs_behind = -(-work.runs // TAILS) - 1  # of a program
    attend = overheads.gap + overheads.attend + overheads.run * runs_behind
    read = attention.attend_us(card) + attention.combine_us(card)
    return read + attend + overheads.gap + overheads.combine


def _portable_us(work: StepWork, card: Card, overheads: PortableOverheads) -> float:
    operations = work.config.num_layers * _PORTABLE_OPERATIONS_OF_LAYER + _PORTABLE_OPERATIONS
    read = US * step_bytes(work) / (overheads.filled * card.bandwidth)
    return read + operations * overheads.operation
