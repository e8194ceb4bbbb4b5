"""How long a step should take whose layers are one launch: arithmetic, no measurement.

    phase = max(bytes / memory - those asked for ahead, bytes through the cache / cache,
                instructions / issue, operations / tensor cores) + latencies + barrier

A phase ends when the last program does. Before a product's phase the cache is asked for the start of
each program's first tile, which so is under way while programs wait for each other.

A barrier that does nothing else was measured elsewhere at 1.09 us on an H100 (2,000 of cooperative
groups, 132 programs) and at 1.0 us on an RTX 30 (a counter, 68 programs), and at 2.2 us amid a
model's layers on an RTX 5090, with the wait for the slowest program: so 1.0 to 2.2.
"""

from dataclasses import dataclass

from engine.model.gpu.cards import Card
from engine.model.gpu.held_forms import products_of
from engine.model.gpu.persistent import is_small
from engine.model.gpu.step_work import US, AttentionWork, Busy, ProductWork, StepWork
from kernels.batch_attention import COMBINED_ROWS, TAILS
from kernels.persistent_layers import MOST_ROWS
from kernels.product.tiles import PREFETCHED_BYTES


@dataclass(frozen=True, slots=True)
class PhaseOverheads:
    """Microseconds beside the bytes of a phase.

    Latencies are those of the same code as kernels of their own, less a kernel's start. A program has
    its multiprocessor to itself: nobody issues while its few warps wait, nor loads between two tiles.
    """

    barrier: float
    product: float
    tile: float  # for each further tile of a program: its loads start anew
    split: float  # for the sums of a split product to meet
    attend: float  # for each share that a program takes
    combine: float
    run: float  # for each further branch that a program of attention takes
    launch: float
    busy: Busy


LUCKY = PhaseOverheads(1.0, 0.8, 0.4, 1.0, 2.5, 1.5, 1.2, 4.0, Busy(0.93, 0.4, 0.7))
UNLUCKY = PhaseOverheads(2.2, 1.5, 1.5, 2.0, 4.0, 2.5, 2.0, 6.0, Busy(0.90, 0.25, 0.4))


def takes(work: StepWork) -> bool:
    """Whether the product would try one launch: of small models, few rows, and layers all alike."""
    products = list(products_of(work.config, work.form))
    are_alike = len({one.name for one in products}) == len(products)
    return is_small(work.config) and work.rows <= MOST_ROWS and are_alike


def layers_us(work: StepWork, card: Card, overheads: PhaseOverheads) -> float:
    """All layers of a step, of which the last has no barrier behind it."""
    read, latency = _attention_us(work, card, overheads)
    products = sum(
        one.count
        * _product_us(
            ProductWork.of(one, work.rows, card),
            card,
            overheads,
            # What `o` begins with is asked for before attention, which leaves memory idle.
            covered=overheads.barrier + (latency if one.name == "o" else 0),
        )
        for one in products_of(work.config, work.form)
        if not one.is_head
    )
    attention = work.config.num_layers * (read + latency)
    return overheads.launch + attention + products - overheads.barrier


def _product_us(
    work: ProductWork, card: Card, overheads: PhaseOverheads, *, covered: float
) -> float:
    """A phase and the barrier behind it; for `covered` microseconds what it begins with is under way."""
    asked = US * _asked_ahead(work, card) / (overheads.busy.memory * card.bandwidth)
    memory = _memory_us(work, card, overheads.busy) - min(asked, covered)
    further = -(-work.programs // card.multiprocessors) - 1
    us = max(memory, work.other_us(card, overheads.busy)) + further * overheads.tile
    split = overheads.split if work.tile.splits > 1 else 0
    return us + overheads.product + split + overheads.barrier


def _memory_us(work: ProductWork, card: Card, busy: Busy) -> float:
    """Tile after tile; the last ones may be so few that no program can read them faster."""
    whole = work.memory_us(card, busy)
    last = work.programs % card.multiprocessors
    alone = US * work.weights / work.programs / card.program_bandwidth if last else 0.0
    return whole * (1 - last / work.programs) + max(whole * last / work.programs, alone)


def _asked_ahead(work: ProductWork, card: Card) -> float:
    """Bytes: of each output of a program's first tile so many, or all that its split has of it."""
    of_output = work.weights / work.programs / work.tile.outputs
    programs = min(work.programs, card.multiprocessors)
    return programs * work.tile.outputs * min(PREFETCHED_BYTES, of_output)


def _attention_us(work: StepWork, card: Card, overheads: PhaseOverheads) -> tuple[float, float]:
    """Of both phases what reading takes, and all else, a barrier behind each included."""
    attention, kv_heads = AttentionWork.of(work), work.config.num_kv_heads
    shares = attention.blocks * kv_heads * (attention.splits + min(work.runs, TAILS))
    pieces = kv_heads * -(-attention.packed_rows // COMBINED_ROWS)
    runs_behind = -(-work.runs // TAILS) - 1  # of a program
    attend = -(-shares // card.multiprocessors) * overheads.attend + runs_behind * overheads.run
    combine = -(-pieces // card.multiprocessors) * overheads.combine
    read = attention.attend_us(card) + attention.combine_us(card)
    return read, attend + combine + 2 * overheads.barrier
