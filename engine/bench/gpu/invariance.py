"""Whether a row says the same, to the bit, in any company: what identical text stands on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.shapes import Shape
from engine.config import Sampling
from engine.model.causal_lm import StepInput, StepOutput, prefill, run_step
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.step_graphs import ROW_BUCKETS
from engine.model.token_tree import MAX_ROWS, TokenTree

_CONTEXTS = (97, 449)  # least and most tokens of a text
_PATHS = 3  # of each tree that are walked row by row
_NEIGHBOURS = 2
_ROOM = 2 * MAX_ROWS


@dataclass(frozen=True, slots=True)
class Invariance:
    """Rows of trees that were compared with the same text read token by token.

    A row differs by a bit of its logits, its lead or its token; the last two fields say how much.
    """

    shape: str
    quantization: str
    trees: int
    rows_checked: int
    rows_different: int
    tokens_different: int
    most_logit_difference: float


@dataclass(frozen=True, slots=True)
class _Compared:
    """One row."""

    is_same: bool
    is_same_token: bool
    logit_difference: float


def measure_invariance(
    lab: Lab, shapes: Sequence[Shape], rounds: int, buckets: Sequence[int] = ROW_BUCKETS
) -> Cases[Invariance]:
    """Check random trees of every bucket, greedy and sampled in turn, `rounds` times."""
    checked = ((shape.full_name, _check(lab, shape, rounds, buckets)) for shape in shapes)
    return lab.cases("comparing rows with rows alone", len(shapes), checked)


def _check(lab: Lab, shape: Shape, rounds: int, buckets: Sequence[int]) -> Iterator[Invariance]:
    positions = (_NEIGHBOURS + 2) * (_CONTEXTS[1] + _ROOM + 64)
    company = _Company(lab.model(shape, positions))
    rows: list[_Compared] = []
    for number in range(rounds):
        for bucket in buckets:
            sampling = Sampling(temperature=0.8 * (number % 2), seed=number)
            rows += company.check(bucket, sampling)
    yield Invariance(
        shape=shape.name,
        quantization=shape.quantization_name,
        trees=rounds * len(buckets),
        rows_checked=len(rows),
        rows_different=sum(not row.is_same for row in rows),
        tokens_different=sum(not row.is_same_token for row in rows),
        most_logit_difference=max(row.logit_difference for row in rows),
    )


class _Company:
    """A tree among others' trees, and the same text alone in another slot."""

    def __init__(self, model: GpuQwen2) -> None:
        self._model, self._rng = model, np.random.default_rng(0)
        capacity = _CONTEXTS[1] + _ROOM
        self._slots = [model.new_slot(capacity) for _ in range(_NEIGHBOURS + 1)]
        self._alone = model.new_slot(capacity)

    def check(self, bucket: int, sampling: Sampling) -> list[_Compared]:
        """Step one tree with others in `bucket` rows; compare some of its rows with rows alone."""
        self._read_texts()
        counts = _shares(self._rng, bucket, len(self._slots))
        trees = [self._tree(count) for count in counts]
        slots = self._slots[: len(trees)]
        steps = [
            StepInput(slot, tree, sampling, wants_logits=True)
            for slot, tree in zip(slots, trees, strict=True)
        ]
        together, *_ = self._model.begin(steps).finish()
        tree = trees[0]
        leaves = self._rng.permutation(tree.num_rows)[:_PATHS]
        return [
            row
            for leaf in leaves.tolist()
            for row in self._walk(tree, _path(tree, leaf), together, sampling)
        ]

    def _read_texts(self) -> None:
        """Give every slot another text, and the one alone that of the first."""
        for slot in self._slots:
            slot.truncate(0)
            count = int(self._rng.integers(*_CONTEXTS))
            prefill(self._model, slot, self._tokens(count).tolist())
        self._alone.truncate(0)
        self._alone.copy_from(self._slots[0], self._slots[0].length)

    def _walk(
        self, tree: TokenTree, path: Sequence[int], together: StepOutput | None, sampling: Sampling
    ) -> list[_Compared]:
        """Read a path's tokens one by one, each behind those before it."""
        slot, start = self._alone, self._alone.length
        compared = []
        for row in path:
            one_row = TokenTree.chain([int(tree.token_ids[row])])
            alone = run_step(self._model, StepInput(slot, one_row, sampling, wants_logits=True))
            compared.append(_compared(alone, together, row))
            slot.commit([0])
        slot.truncate(start)
        return compared

    def _tree(self, rows: int) -> TokenTree:
        parents = np.full(rows, -1, np.int32)
        for row in range(1, rows):
            parents[row] = row - 1 if self._rng.random() < 0.5 else self._rng.integers(row)
        return TokenTree(self._tokens(rows), parents)

    def _tokens(self, count: int) -> np.ndarray:
        return self._rng.integers(self._model.vocab_size, size=count)


def _shares(rng: np.random.Generator, rows: int, most: int) -> list[int]:
    """Share a bucket's rows among up to `most` trees, the first taking at least half."""
    count = min(most, max(1, rows // 4))
    others = [int(rng.integers(1, max(2, rows // (2 * most)))) for _ in range(count - 1)]
    return [rows - sum(others), *others]


def _path(tree: TokenTree, leaf: int) -> list[int]:
    rows = [leaf]
    while rows[-1]:
        rows.append(int(tree.parents[rows[-1]]))
    return rows[::-1]


def _compared(alone: StepOutput, together: StepOutput | None, row: int) -> _Compared:
    if together is None or alone.logits is None or together.logits is None:
        raise ValueError("a step that was asked for its logits has them")
    one, many = alone.logits[0], together.logits[row]
    is_same_token = bool(alone.chosen[0] == together.chosen[row])
    is_as_probable = bool(alone.log_probs[0] == together.log_probs[row])
    return _Compared(
        is_same=is_same_token and is_as_probable and torch.equal(one, many),
        is_same_token=is_same_token,
        logit_difference=float((one - many).abs().max()),
    )
