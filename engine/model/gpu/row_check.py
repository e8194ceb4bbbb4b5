"""Whether a device gives a row the same bits in any company, tried with the model itself.

Where PyTorch runs a step, products and sums are the device's own. Equal text with drafts and without
rests on their treating the rows of one shape alike, which nobody promises.
"""

import numpy as np
import torch

from engine.model.causal_lm import CausalModel, StepInput, prefill, run_step
from engine.model.token_tree import TokenTree

# Of the text before a tree: its rows stay in one chunk of keys, cross into the next, or begin one.
_LENGTHS = (40, 125, 128)
_BRANCH, _NUM_BRANCHES = 4, 3
EQUAL = "a row has the same bits in any company, so drafts do not change the text"
UNEQUAL = "a row's bits depend on its company, so drafts may change the text"


def check_rows(model: CausalModel) -> str:
    """What was found, in a sentence."""
    return EQUAL if all(_are_alike(model, length) for length in _LENGTHS) else UNEQUAL


def _are_alike(model: CausalModel, length: int) -> bool:
    """Compare a tree's rows with those of the tree turned round, and with each branch token by token."""
    numbers = np.random.default_rng(length)
    text, root, *branches = (
        numbers.integers(0, model.vocab_size, size).tolist()
        for size in (length, 1, *[_BRANCH] * _NUM_BRANCHES)
    )
    tree = _logits(model, text, _tree(root, branches))
    turned = _logits(model, text, _tree(root, branches[::-1]))
    alike = [torch.equal(tree[0], turned[0])]
    for place, branch in enumerate(branches):
        rows = _rows(tree, place)
        alike.append(torch.equal(rows, _rows(turned, _NUM_BRANCHES - 1 - place)))
        alike.append(torch.equal(rows, _one_by_one(model, [*text, *root], branch)))
    return all(alike)


def _tree(root: list[int], branches: list[list[int]]) -> TokenTree:
    token_ids = np.array([*root, *(token for branch in branches for token in branch)])
    parents = np.arange(-1, len(token_ids) - 1, dtype=np.int32)
    parents[1::_BRANCH] = 0
    return TokenTree(token_ids, parents)


def _rows(logits: torch.Tensor, branch: int) -> torch.Tensor:
    return logits[1 + branch * _BRANCH :][:_BRANCH]


def _logits(model: CausalModel, text: list[int], tree: TokenTree) -> torch.Tensor:
    slot = model.new_slot(len(text) + tree.num_rows)
    prefill(model, slot, text)
    return _logits_of(model, StepInput(slot, tree, wants_logits=True))


def _one_by_one(model: CausalModel, text: list[int], branch: list[int]) -> torch.Tensor:
    """Each of the branch's tokens in a step of its own, behind what it follows.

    The last token of `text` takes such a step too, as in plain decoding.
    """
    slot = model.new_slot(len(text) + len(branch))
    prefill(model, slot, text[:-1])
    found = []
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
