"""Whether a device gives a row the same bits in any company, tried with the model itself.

Where PyTorch runs a step, products and sums are the device's own. Equal text with drafts and without
rests on their treating the rows of one shape alike, which nobody promises.
"""

import numpy as np
import torch

from engine.model.causal_lm import CacheSlot, CausalModel, StepInput, prefill, run_step
from engine.model.token_tree import MAX_ROWS, TokenTree

# Of the text before a tree: its rows stay in one chunk of keys, cross into the next, or begin one.
_LENGTHS = (40, 125, 128)
_LONG = 4220  # another number of chunks is another product, which a device may run otherwise
_BRANCH, _NUM_BRANCHES = 4, 3
_ROOM = 2 * MAX_ROWS  # behind a text
EQUAL = "a row has the same bits in any company, so drafts do not change the text"
UNEQUAL = "a row's bits depend on its company, so drafts may change the text"


def check_rows(model: CausalModel, positions: int) -> str:
    """What was found, in a sentence; `positions` tokens have keys and values at a time."""
    lengths = [*_LENGTHS, min(_LONG, model.max_context - _ROOM, positions - _ROOM)]
    are_alike = all(_are_alike(model, length) for length in lengths)
    return EQUAL if are_alike and _are_alike_beside(model) else UNEQUAL


def _are_alike(model: CausalModel, length: int) -> bool:
    """Compare a tree's rows with those of the tree turned round, and with branches token by token.

    Of a long text, which takes a while to read, with one branch.
    """
    text, root, branches = _texts(model, length)
    tree = _logits(model, text, _tree(root, branches))
    turned = _logits(model, text, _tree(root, branches[::-1]))
    alike = [torch.equal(tree[0], turned[0])]
    for place, branch in enumerate(branches):
        rows = _rows(tree, place)
        alike.append(torch.equal(rows, _rows(turned, _NUM_BRANCHES - 1 - place)))
        if place == 0 or length in _LENGTHS:
            alike.append(torch.equal(rows, _one_by_one(model, [*text, *root], branch)))
    return all(alike)


def _are_alike_beside(model: CausalModel) -> bool:
    """Compare a row of each of two texts alone with both in one step, where the model takes two."""
    if model.max_sequences < 2:
        return True
    steps = list[StepInput]()
    for length in _LENGTHS[:2]:
        text, root, _ = _texts(model, length)
        steps.append(StepInput(_slot(model, text), TokenTree.chain(root), wants_logits=True))
    alone = [_logits_of(model, step) for step in steps]
    both = [output.logits for output in model.begin(steps).finish() if output is not None]
    pairs = zip(alone, both, strict=True)
    return all(other is not None and torch.equal(one, other) for one, other in pairs)


def _texts(model: CausalModel, length: int) -> tuple[list[int], list[int], list[list[int]]]:
    """A text of so many tokens, a root behind it, and branches behind that."""
    numbers = np.random.default_rng(length)
    text, root, *branches = (
        numbers.integers(0, model.vocab_size, size).tolist()
        for size in (length, 1, *[_BRANCH] * _NUM_BRANCHES)
    )
    return text, root, branches


def _slot(model: CausalModel, text: list[int]) -> CacheSlot:
    """A slot that holds a text, with room for a tree."""
    slot = model.new_slot(len(text) + _ROOM)
    prefill(model, slot, text)
    return slot


def _tree(root: list[int], branches: list[list[int]]) -> TokenTree:
    token_ids = np.array([*root, *(token for branch in branches for token in branch)])
    parents = np.arange(-1, len(token_ids) - 1, dtype=np.int32)
    parents[1::_BRANCH] = 0
    return TokenTree(token_ids, parents)


def _rows(logits: torch.Tensor, branch: int) -> torch.Tensor:
    return logits[1 + branch * _BRANCH :][:_BRANCH]


def _logits(model: CausalModel, text: list[int], tree: TokenTree) -> torch.Tensor:
    return _logits_of(model, StepInput(_slot(model, text), tree, wants_logits=True))


def _one_by_one(model: CausalModel, text: list[int], branch: list[int]) -> torch.Tensor:
    """Each of the branch's tokens in a step of its own, behind what it follows.

    The last token of `text` takes such a step too, as in plain decoding.
    """
    slot, found = _slot(model, text[:-1]), []
    for token in [text[-1], *branch]:
        step = StepInput(slot, TokenTree.chain([token]), wants_logits=True)
        found.append(_logits_of(model, step))
        slot.commit([0])
    return torch.cat(found[1:])


def _logits_of(model: CausalModel, step: StepInput) -> torch.Tensor:
    logits = run_step(model, step).logits
    if logits is None:
        raise ValueError("a step that was asked for logits has none")
    return logits
