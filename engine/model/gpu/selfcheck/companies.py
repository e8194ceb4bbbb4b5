"""In whose company the rows of a check are computed: alone, in a tree, padded, permuted, beside others.

All companies are made of the nodes of one token tree behind one text, so that a node has to have
the same bits in each of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from engine.model.causal_lm import StepInput
from engine.model.gpu.batch_layout import Kept, SlotRange
from engine.model.gpu.buffers import Inputs, StepShape
from engine.model.gpu.embedding import Embedding, Lookup
from engine.model.gpu.step_graphs import SEQUENCE_BUCKETS, bucket
from engine.model.token_tree import MAX_ROWS, TokenTree, depths_of
from kernels.batch import KEY_TILE, BatchMetadata

_ROOM = 2 * MAX_ROWS  # positions behind a text: committed nodes, then the rows of the step


@dataclass(frozen=True, slots=True)
class TreePart:
    """One sequence of a step: some nodes, each behind its parent, and those committed before them."""

    nodes: tuple[int, ...]
    committed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Company:
    """A step of `rows` rows, of which the seats' nodes take some and the others hold nothing."""

    name: str
    rows: int
    seats: tuple[TreePart, ...]


class CheckedTree:
    """The tree: `parents` int32 and `tokens` int64 of its nodes, and the tokens of the text."""

    def __init__(self, vocab_size: int, text_len: int) -> None:
        """Half of the nodes follow the one before them, the others any."""
        rng = np.random.default_rng(0)
        self.text_len, self.vocab_size = text_len, vocab_size
        self.parents = np.full(MAX_ROWS, -1, np.int32)
        for node in range(1, MAX_ROWS):
            self.parents[node] = node - 1 if rng.random() < 0.5 else rng.integers(node)
        self.tokens = rng.integers(vocab_size, size=MAX_ROWS)

    @cached_property
    def depths(self) -> np.ndarray:
        """int64 [nodes]: a node's place behind the text."""
        depths: np.ndarray = depths_of(self.parents)
        return depths

    def committed(self, node: int) -> tuple[int, ...]:
        """All nodes above one, from the root on."""
        above = []
        while (node := int(self.parents[node])) >= 0:
            above.append(node)
        return tuple(reversed(above))

    def alone(self, node: int) -> TreePart:
        """A node as plain decoding meets it."""
        return TreePart((node,), self.committed(node))

    def turned(self, count: int) -> TreePart:
        """The first nodes, siblings in the other order."""
        order, waiting = list[int](), [0]
        while waiting:
            node = waiting.pop(0)
            order.append(node)
            children = np.flatnonzero(self.parents[:count] == node)
            waiting = [*reversed(children.tolist()), *waiting]
        return TreePart(tuple(order))

    def companies(self, buckets: Sequence[int]) -> list[Company]:
        """All companies of steps of these numbers of rows, the largest first: it has every node."""
        return list(self._companies(sorted(buckets, reverse=True)))

    def _companies(self, buckets: Sequence[int]) -> Iterator[Company]:
        for rows in buckets:
            yield Company(f"a tree of {rows} rows", rows, (TreePart(tuple(range(rows))),))
        for rows in (rows for rows in buckets if rows > 1):
            some = self.turned(max(1, rows * 3 // 4))
            yield Company(f"a permuted tree padded to {rows} rows", rows, (some,))
        for node in self._telling(buckets[0]):
            yield Company("a step of its own", buckets[-1], (self.alone(node),))
        if len(seats := self._beside(buckets[0])) > 1:
            yield Company(f"{len(seats)} sequences", buckets[0], seats)

    def _telling(self, count: int) -> Iterable[int]:
        """The last node, the deepest and the root, each once."""
        return dict.fromkeys((count - 1, int(self.depths[:count].argmax()), 0))

    def _beside(self, rows: int) -> tuple[TreePart, ...]:
        """Some single nodes before and behind a part of the tree."""
        first, *others = map(self.alone, self._telling(rows))
        seats = (first, self.turned(max(1, rows // 2)), *others)
        return seats if sum(len(seat.nodes) for seat in seats) <= rows else seats[:1]


@dataclass(frozen=True, slots=True)
class PackedCompany:
    """A company on a device. Entries E are the pairs of a row and its node, a seat's together.

    `rows`, `nodes` and `positions` (in the arena) int64 [E]; `bases` of the seats, one each.
    """

    name: str
    seats: tuple[TreePart, ...]
    batch: BatchMetadata
    lookup: Lookup
    rows: torch.Tensor
    nodes: torch.Tensor
    positions: torch.Tensor
    bases: tuple[int, ...]
    num_positions: int


def packed(
    company: Company,
    tree: CheckedTree,
    group: int,
    embedding: Embedding,
    device: torch.device,
) -> PackedCompany:
    """Lay a company out as a step does, each sequence behind a text of its own."""
    sequences = bucket(SEQUENCE_BUCKETS, len(company.seats))
    span = -(-(tree.text_len + _ROOM) // KEY_TILE) * KEY_TILE
    steps = [_step(tree, seat, span * place) for place, seat in enumerate(company.seats)]
    inputs = Inputs(StepShape(company.rows, sequences), group, device, embedding.hosted)
    rows, nodes, positions = [], [], []
    for step, seat, (first_row, order) in zip(
        steps, company.seats, inputs.pack(steps), strict=True
    ):
        offsets = np.arange(len(order))
        rows.append(first_row + offsets)
        nodes.append(np.asarray(seat.nodes)[order])
        positions.append(step.slot.base + step.slot.length + offsets)
    inputs.upload()

    def placed(parts: list[np.ndarray]) -> torch.Tensor:
        return torch.from_numpy(np.concatenate(parts)).to(device)

    return PackedCompany(
        name=company.name,
        seats=company.seats,
        batch=inputs.batch,
        lookup=inputs.lookup(embedding),
        rows=placed(rows),
        nodes=placed(nodes),
        positions=placed(positions),
        bases=tuple(step.slot.base for step in steps),
        num_positions=span * sequences,
    )


def _step(tree: CheckedTree, seat: TreePart, base: int) -> StepInput:
    """Also keeps every second row of a step before, which only the commit looks at."""
    places = {node: place for place, node in enumerate(seat.nodes)}
    parents = [places.get(int(tree.parents[node]), -1) for node in seat.nodes]
    kept = Kept(tree.text_len, 1 + 2 * np.arange(max(1, len(seat.nodes) // 2)))
    slot = SlotRange(base, tree.text_len + len(seat.committed), kept)
    return StepInput(slot, TokenTree(tree.tokens[list(seat.nodes)], np.asarray(parents, np.int32)))
