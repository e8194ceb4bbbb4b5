"""Compare the rows of one text in all kinds of trees: each must have the same bits in every tree.

The model itself runs them in the form under check. So if PyTorch runs it, the device's own products
and sums are tested. Unwritten memory is NaN.
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

StepAnswer = dict[str, torch.Tensor]  # by name, on the CPU; the first dimension is the tree's rows
GREEDY, DRAWN = Sampling(), Sampling(temperature=1.0, seed=1)
ROOM = 2 * MAX_ROWS  # positions after a text: committed tokens, then the rows of a step
_PATH = (0, 2, 3, 4)  # nodes that hold the model's own tokens: not the tree's first branch
_ODD = 13  # tokens in a first piece: not a power of two
_SHORT = 64  # positions of a text that shares a step, and as many again for the step
CHOSEN, LOG_PROBS, LOGITS = "chosen tokens", "log-probabilities", "logits"
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
# Marks unwritten keys, by element size: a NaN that no arithmetic gives, so a written NaN shows.
_MARKS = {2: 0x7FDE, 4: 0x7FDEADAD}


class DifferenceError(Exception):
    """A check failed; the message is a phrase."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much to check: `lengths` of texts in tokens, most rows of a step, runs of a step.

    After 125 tokens a tree's rows cross into the next tile of keys. After 4,200 tokens a split of
    attention has several tiles.
    """

    lengths: tuple[int, ...] = (40, 125, 128, 4200)
    most_rows: int = MAX_ROWS
    replays: int = 200

    @classmethod
    def of(cls, device: torch.device) -> Self:
        """Return the extent for a device; a CPU, used only in tests, checks little."""
        return cls((40, 125), 8, 3) if device.type == "cpu" else cls()


class CheckedTree:
    """`parents` int32 and `tokens` int64 of 128 nodes; the nodes of `_PATH` have the path's tokens."""

    def __init__(self, vocab_size: int, path: Sequence[int]) -> None:
        """Make half of the nodes children of the previous node, the others of a random one."""
        rng = np.random.default_rng(0)
        self.parents = np.full(MAX_ROWS, -1, np.int32)
        for node in range(1, MAX_ROWS):
            self.parents[node] = node - 1 if rng.random() < 0.5 else rng.integers(node)
        self.parents[: _PATH[-1] + 1] = (-1, 0, 0, 2, 3)
        self.tokens = rng.integers(vocab_size, size=MAX_ROWS)
        self.tokens[list(_PATH)] = path

    def of(self, nodes: Sequence[int]) -> TokenTree:
        """Return a tree of these nodes, in this order."""
        place = {node: at for at, node in enumerate(nodes)}
        parents = [place.get(int(self.parents[node]), -1) for node in nodes]
        return TokenTree(self.tokens[list(nodes)], np.array(parents, np.int32))

    def parts(self, sizes: Sequence[int]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield a name and nodes, parents first, for trees of these sizes.

        Then come trees with reversed siblings, a quarter of whose rows are empty.
        """
        for rows in sizes:
            yield f"a tree of {rows}", tuple(range(rows))
        for rows in sizes:
            yield f"a turned tree of {rows} at most", self._turned(max(1, rows * 3 // 4))

    def _turned(self, count: int) -> tuple[int, ...]:
        """Return the first `count` nodes with siblings reversed."""
        order, waiting = list[int](), [0]
        while waiting:
            node = waiting.pop(0)
            order.append(node)
            children = np.flatnonzero(self.parents[:count] == node)
            waiting = [*reversed(children.tolist()), *waiting]
        return tuple(order)


def has_equal_rows(model: GpuQwen2, extent: Extent) -> bool:
    """Whether the bits of each row are the same whatever rows are beside it."""
    try:
        for _ in checks(model, extent):
            pass
    except DifferenceError:
        return False
    finally:
        clear(model)
    return True


def checks(model: GpuQwen2, extent: Extent) -> Iterator[None]:
    """Compare rows of all trees and several texts, yielding in between. Raises DifferenceError."""
    for length in fitted(model, extent.lengths):
        _check_trees(model, length, extent.most_rows)
        yield
    _check_beside(model, extent.most_rows)


def clear(model: GpuQwen2) -> None:
    """Zero all memory, so that no NaN is left."""
    with model.graphs.on_stream():
        model.graphs.fill(0.0)
        model.graphs.forward.scratch.clear()
        for held in (model.arena.keys, model.arena.values):
            held.zero_()


def _check_trees(model: GpuQwen2, length: int, most_rows: int) -> None:
    """Compare rows of trees of all sizes with each other and with plain decoding."""
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
    """Compare the rows of several texts, each alone, with those of one shared step."""
    texts = _short_texts(model, sizes_of(model, most_rows)[0])
    for sampling, has_logits in product((GREEDY, DRAWN), (True, False)):
        steps = [StepInput(*text, sampling, wants_logits=has_logits) for text in texts]
        alone = [answers(model, [step])[0] for step in steps]
        for one, other in zip(alone, answers(model, steps), strict=True):
            compare(other, one, f"beside {len(steps) - 1} other texts")


def _short_texts(model: GpuQwen2, most_rows: int) -> list[tuple[GpuSlot, TokenTree]]:
    """Return as many short texts with small trees as fit one step."""
    checked = CheckedTree(model.vocab_size, (0,) * len(_PATH))
    most = min(model.max_sequences, model.arena.free_positions // (2 * _SHORT))
    trees = [checked.of(range(1 + 3 * text % 5)) for text in range(most)]
    while sum(tree.num_rows for tree in trees) > most_rows:
        trees.pop()
    slots = (slot_behind(model, _SHORT // 2 + text, _SHORT // 2) for text in range(len(trees)))
    return list(zip(slots, trees, strict=True))


def fitted(model: GpuQwen2, lengths: Sequence[int], texts: int = 2) -> list[int]:
    """Cap the lengths so that `texts` such texts fit the cache at a time."""
    room = model.arena.free_positions // texts - POSITION_STEP
    most = min(model.max_context, room) - ROOM
    return list(dict.fromkeys(min(length, most) for length in lengths))


def sizes_of(model: GpuQwen2, most_rows: int) -> list[int]:
    """Return the row counts, largest first, at which rows must agree; at least one."""
    most = max(min(model.most_rows, most_rows), model.row_buckets[0])
    return [rows for rows in reversed(model.row_buckets) if rows <= most]


def text_of(model: GpuQwen2, length: int) -> list[int]:
    """Return random tokens, always the same for a length."""
    rng = np.random.default_rng(length)
    return [int(token) for token in rng.integers(model.vocab_size, size=length)]


def slot_behind(model: GpuQwen2, length: int, room: int = ROOM, first: int = 0) -> GpuSlot:
    """Return a slot that holds a text without its last token, with room after it.

    The `first` tokens are read on their own, so that all pieces begin elsewhere.
    """
    slot, text = model.new_slot(length + room), text_of(model, length)[:-1]
    for piece in (text[:first], text[first:]):
        prefill(model, slot, piece)
    return slot


def _decoded(model: GpuQwen2, slot: GpuSlot, token: int) -> tuple[list[int], StepAnswer]:
    """Decode plainly after `token`; return it with the new tokens, and the rows of the steps."""
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
    """Return the rows of one step of one text. Raises DifferenceError."""
    return answers(model, [StepInput(slot, tree, sampling, wants_logits=has_logits)])[0]


def answers(model: GpuQwen2, steps: Sequence[StepInput]) -> list[StepAnswer]:
    """Run a step amid NaN, and return each text's outputs with the keys and values it wrote.

    Raises DifferenceError if keys are written elsewhere, or if the walk takes a wrong path.
    """
    arena = model.arena
    # A step that still has to move kept rows needs them where they are.
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
    """Return the keys and values after the rows of a slot's step, as integers."""
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
    if output.logits is not None:
        answer[LOGITS] = torch.from_numpy(output.logits)
    return answer


def rows_of(answer: StepAnswer, rows: Sequence[int]) -> StepAnswer:
    """Return these rows of an answer, in this order."""
    return {name: values[list(rows)] for name, values in answer.items()}


def compare(found: StepAnswer, expected: StepAnswer, where: str) -> None:
    """Raise DifferenceError if a tensor that both have differs by a bit."""
    for name in found:
        if name in expected and not torch.equal(_bits(found[name]), _bits(expected[name])):
            raise DifferenceError(f"{name} have other bits {where}")


def _bits(values: torch.Tensor) -> torch.Tensor:
    return values.view(_BITS[values.element_size()])
