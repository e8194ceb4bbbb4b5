"""Rows of one text in all kinds of trees: each must have the same bits in every one.

They are tried with the model itself, in the form that runs, so a device's own products and sums
are tried where PyTorch runs it. Memory that was not written is NaN.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
import torch

from engine.config import Sampling
from engine.model.causal_lm import StepInput, StepOutput, prefill
from engine.model.gpu.arena import POSITION_STEP, KVArena
from engine.model.gpu.qwen2 import GpuQwen2, GpuSlot
from engine.model.token_tree import MAX_ROWS, TokenTree, verify

StepAnswer = dict[str, torch.Tensor]  # by name, on the CPU: a row of the tree comes first
GREEDY, DRAWN = Sampling(), Sampling(temperature=1.0, seed=1)
ROOM = 2 * MAX_ROWS  # positions behind a text: committed tokens, then the rows of a step
_PATH = (0, 2, 3, 4)  # nodes that the model would write itself: not the tree's first branch
_ODD = 13  # tokens: no power of two
_SHORT = 64  # positions of a text beside others, and as many for its step
CHOSEN, LOG_PROBS, LOGITS = "chosen tokens", "log-probabilities", "logits"
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
# Of keys not written yet, by their bytes: a NaN that no arithmetic gives, so a written NaN shows.
_MARKS = {2: 0x7FDE, 4: 0x7FDEADAD}


class DifferenceError(Exception):
    """What a check has shown, in a phrase."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is checked: `lengths` of texts in tokens, rows of a step at most, runs of a step.

    Of a text of 125 tokens a tree's rows cross into the next tile of keys; behind 4,200 tokens
    attention has several tiles in a split.
    """

    lengths: tuple[int, ...] = (40, 125, 128, 4200)
    most_rows: int = MAX_ROWS
    replays: int = 200

    @classmethod
    def of(cls, device: torch.device) -> Self:
        """A CPU only stands for a GPU, where this is tried."""
        return cls((40, 125), 8, 3) if device.type == "cpu" else cls()


class CheckedTree:
    """`parents` int32 and `tokens` int64 of 128 nodes; the nodes of `_PATH` have the path's tokens."""

    def __init__(self, vocab_size: int, path: Sequence[int]) -> None:
        """Half of the nodes follow the one before them, the others any."""
        rng = np.random.default_rng(0)
        self.parents = np.full(MAX_ROWS, -1, np.int32)
        for node in range(1, MAX_ROWS):
            self.parents[node] = node - 1 if rng.random() < 0.5 else rng.integers(node)
        self.parents[: _PATH[-1] + 1] = (-1, 0, 0, 2, 3)
        self.tokens = rng.integers(vocab_size, size=MAX_ROWS)
        self.tokens[list(_PATH)] = path

    def of(self, nodes: Sequence[int]) -> TokenTree:
        """These nodes as a tree, in their order."""
        place = {node: at for at, node in enumerate(nodes)}
        parents = [place.get(int(self.parents[node]), -1) for node in nodes]
        return TokenTree(self.tokens[list(nodes)], np.array(parents, np.int32))

    def parts(self, sizes: Sequence[int]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Trees of these sizes, and with siblings in the other order and a part of the rows empty.

        Of each a name, and its nodes, each behind its parent.
        """
        for rows in sizes:
            yield f"a tree of {rows}", tuple(range(rows))
        for rows in sizes:
            yield f"a turned tree of {rows} at most", self._turned(max(1, rows * 3 // 4))

    def _turned(self, count: int) -> tuple[int, ...]:
        """The first nodes, siblings in the other order."""
        order, waiting = list[int](), [0]
        while waiting:
            node = waiting.pop(0)
            order.append(node)
            children = np.flatnonzero(self.parents[:count] == node)
            waiting = [*reversed(children.tolist()), *waiting]
        return tuple(order)


def has_equal_rows(model: GpuQwen2, extent: Extent) -> bool:
    """Whether each row has the same bits beside any others: of a model that PyTorch runs."""
    try:
        for _ in checks(model, extent):
            pass
    except DifferenceError:
        return False
    finally:
        clear(model)
    return True


def checks(model: GpuQwen2, extent: Extent) -> Iterator[None]:
    """Compare rows of all trees and of several texts, a part at a time. Raises DifferenceError."""
    for length in fitted(model, extent.lengths):
        _check_trees(model, length, extent.most_rows)
        yield
    _check_beside(model, extent.most_rows)


def clear(model: GpuQwen2) -> None:
    """Leave no NaN behind."""
    with model.graphs.on_stream():
        model.graphs.fill(0.0)
        model.graphs.forward.scratch.clear()
        for held in (model.arena.keys, model.arena.values):
            held.zero_()


def _check_trees(model: GpuQwen2, length: int, most_rows: int) -> None:
    """Compare rows of trees of all sizes with each other, and with plain decoding."""
    slot, plain = slot_behind(model, length), slot_behind(model, length, first=_ODD)
    tokens, decoded = _decoded(model, plain, text_of(model, length)[-1])
    tree = CheckedTree(model.vocab_size, tokens[:-1])
    sizes = sizes_of(model, most_rows)
    for sampling in (DRAWN, GREEDY):
        first: StepAnswer = {}
        for has_logits, (name, nodes) in product((True, False), tree.parts(sizes)):
            answer = answer_of(model, slot, tree.of(nodes), sampling, has_logits=has_logits)
            first = first or answer
            compare(answer, rows_of(first, nodes), f"in {name}")
    compare(decoded, rows_of(first, _PATH), "in a step of its own")
    answer_of(model, slot, tree.of(range(sizes[0])))
    slot.commit(_PATH[:-1])
    behind = answer_of(model, slot, TokenTree.chain(tokens[-2:-1]))
    slot.commit([0])
    compare(behind, rows_of(decoded, (len(_PATH) - 1,)), "behind a branch that was kept")
    for name, held in (("keys", model.arena.keys), ("values", model.arena.values)):
        one, other = (held[:, :, at.base : at.base + at.length] for at in (slot, plain))
        compare({name: one}, {name: other}, "however a text was read")


def _check_beside(model: GpuQwen2, most_rows: int) -> None:
    """Compare rows of several texts alone with all in one step."""
    texts = _short_texts(model, sizes_of(model, most_rows)[0])
    for sampling, has_logits in product((GREEDY, DRAWN), (True, False)):
        steps = [StepInput(*text, sampling, wants_logits=has_logits) for text in texts]
        alone = [answers(model, [step])[0] for step in steps]
        for one, other in zip(alone, answers(model, steps), strict=True):
            compare(other, one, f"beside {len(steps) - 1} other texts")


def _short_texts(model: GpuQwen2, most_rows: int) -> list[tuple[GpuSlot, TokenTree]]:
    """Trees of few rows behind short texts, as many as share a step."""
    checked = CheckedTree(model.vocab_size, (0,) * len(_PATH))
    most = min(model.max_sequences, model.arena.free_positions // (2 * _SHORT))
    trees = [checked.of(range(1 + 3 * text % 5)) for text in range(most)]
    while sum(tree.num_rows for tree in trees) > most_rows:
        trees.pop()
    slots = (slot_behind(model, _SHORT // 2 + text, _SHORT // 2) for text in range(len(trees)))
    return list(zip(slots, trees, strict=True))


def fitted(model: GpuQwen2, lengths: Sequence[int], texts: int = 2) -> list[int]:
    """The lengths, each no longer than that so many such texts have room at a time."""
    room = model.arena.free_positions // texts - POSITION_STEP
    most = min(model.max_context, room) - ROOM
    return list(dict.fromkeys(min(length, most) for length in lengths))


def sizes_of(model: GpuQwen2, most_rows: int) -> list[int]:
    """Rows of steps whose rows have the same bits, the most first; one size at least."""
    most = max(min(model.most_rows, most_rows), model.row_buckets[0])
    return [rows for rows in reversed(model.row_buckets) if rows <= most]


def text_of(model: GpuQwen2, length: int) -> list[int]:
    """Random tokens, the same for each length."""
    rng = np.random.default_rng(length)
    return [int(token) for token in rng.integers(model.vocab_size, size=length)]


def slot_behind(model: GpuQwen2, length: int, room: int = ROOM, first: int = 0) -> GpuSlot:
    """A slot that holds a text but for its last token, with room behind it.

    Of the text `first` tokens are read by themselves, so that all pieces begin elsewhere.
    """
    slot, text = model.new_slot(length + room), text_of(model, length)[:-1]
    for piece in (text[:first], text[first:]):
        prefill(model, slot, piece)
    return slot


def _decoded(model: GpuQwen2, slot: GpuSlot, token: int) -> tuple[list[int], StepAnswer]:
    """What plain decoding writes behind a token, that first; and the rows of its steps."""
    tokens, steps = [token], []
    for _ in _PATH:
        steps.append(answer_of(model, slot, TokenTree.chain(tokens[-1:])))
        slot.commit([0])
        tokens.append(int(steps[-1][CHOSEN]))
    return tokens, {name: torch.cat([step[name] for step in steps]) for name in steps[0]}


def answer_of(
    model: GpuQwen2,
    slot: GpuSlot,
    tree: TokenTree,
    sampling: Sampling = GREEDY,
    *,
    has_logits: bool = True,
) -> StepAnswer:
    """The rows of one step of one text. Raises DifferenceError."""
    return answers(model, [StepInput(slot, tree, sampling, wants_logits=has_logits)])[0]


def answers(model: GpuQwen2, steps: Sequence[StepInput]) -> list[StepAnswer]:
    """Run a step amid NaN; of each text, what its rows say and the keys and values that they leave.

    Raises DifferenceError where keys are written beside those, or the walk takes another path.
    """
    arena = model.arena
    # A step that moves what it keeps finds that there.
    filled = [step for step in steps if step.slot.kept is None]
    with model.graphs.on_stream():
        model.graphs.fill(torch.nan)
        for step in filled:
            for held in _behind(arena, step.slot, 0):
                held.fill_(_MARKS[held.element_size()])
    outputs = model.begin(steps).finish()
    with model.graphs.on_stream():
        for step in filled:
            for held in _behind(arena, step.slot, step.tree.num_rows):
                if (held != _MARKS[held.element_size()]).any():
                    raise DifferenceError("keys or values are written where no row stands")
        pairs = zip(steps, outputs, strict=True)
        return [_answer(arena, step, output) for step, output in pairs if output is not None]


def _behind(arena: KVArena, slot: GpuSlot, rows: int) -> list[torch.Tensor]:
    """The keys and values behind the rows of a slot's step, as whole numbers."""
    room = slice(slot.base + slot.length + rows, slot.base + slot.capacity)
    return [_bits(held)[:, :, room] for held in (arena.keys, arena.values)]


def _answer(arena: KVArena, step: StepInput, output: StepOutput) -> StepAnswer:
    tree, slot = step.tree, step.slot
    if not np.array_equal(output.path, verify(tree.token_ids, tree.parents, output.chosen)):
        raise DifferenceError("the walk takes another path than the rows choose")
    at = torch.from_numpy(slot.base + slot.length + slot.places).to(arena.keys.device)
    answer = {
        CHOSEN: torch.from_numpy(output.chosen),
        LOG_PROBS: torch.from_numpy(output.log_probs),
        "likely tokens": torch.from_numpy(output.top_tokens()),
        "keys": arena.keys[:, :, at].permute(2, 0, 1, 3).cpu(),
        "values": arena.values[:, :, at].permute(2, 0, 1, 3).cpu(),
    }
    return answer if output.logits is None else answer | {LOGITS: output.logits}


def rows_of(answer: StepAnswer, rows: Sequence[int]) -> StepAnswer:
    """Some rows of it, in this order."""
    return {name: values[list(rows)] for name, values in answer.items()}


def compare(found: StepAnswer, expected: StepAnswer, where: str) -> None:
    """Raise DifferenceError where what both have differs by a bit."""
    for name in found:
        if name in expected and not torch.equal(_bits(found[name]), _bits(expected[name])):
            raise DifferenceError(f"{name} have other bits {where}")


def _bits(values: torch.Tensor) -> torch.Tensor:
    return values.view(_BITS[values.element_size()])
