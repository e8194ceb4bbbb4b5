"""What every causal model promises: each row of a step reads as its own text does from scratch."""

from typing import Any

import numpy as np
import pytest
import torch

from engine.model.causal_lm import CausalModel, StepInput, piece_rows, prefill
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.model.transformers.adapter import TransformersModel
from tests.support.greedy import reference_logits
from tests.support.own_qwen2 import SHAPES, qwen2_pair
from tests.support.steps import logits_of, read
from tests.support.tiny_models import tiny_model
from tests.support.trees import (
    PROMPT,
    assert_close,
    expected_logits,
    path_to,
    random_tree,
    tokens_to,
)

pytestmark = pytest.mark.usefixtures("one_thread")

# gemma3 and mistral have sliding windows of 16 tokens.
FAMILIES = ["qwen2", "llama", "starcoder2", "gemma", "gemma3_text", "mistral", "qwen3_moe"]


@pytest.fixture(scope="module", params=[*SHAPES, *FAMILIES])
def pair(request: pytest.FixtureRequest) -> tuple[CausalModel, Any]:
    """Our own model or the adapter's, and transformers' with the same weights."""
    if request.param in SHAPES:
        return qwen2_pair(request.param)
    return TransformersModel(tiny_model(request.param)), tiny_model(request.param)


def test_each_row_of_a_tree_has_the_logits_of_its_own_text(pair):
    model, reference = pair
    slot = model.new_slot(128)
    prefill(model, slot, PROMPT)
    tree = random_tree(np.random.default_rng(2), 48, model.vocab_size)
    logits = logits_of(model, slot, tree)
    assert (logits.dtype, logits.shape) == (torch.float32, (48, model.vocab_size))
    assert_close(logits, expected_logits(reference, PROMPT, tree))


def test_an_accepted_branch_reads_like_text_from_scratch(pair):
    model, reference = pair
    slot = model.new_slot(128)
    prefill(model, slot, PROMPT)
    rng = np.random.default_rng(3)
    text = list(PROMPT)
    for _ in range(3):
        tree = random_tree(rng, 16, model.vocab_size)
        logits_of(model, slot, tree)
        last = int(np.argmax(tree.depths + (np.arange(16) % 2)))
        slot.commit(path_to(tree, last))
        text += tokens_to(tree, last)
        assert slot.length == len(text)
    tree = random_tree(rng, 8, model.vocab_size)
    assert_close(logits_of(model, slot, tree), expected_logits(reference, text, tree))


def test_truncated_tokens_are_forgotten(pair):
    model, reference = pair
    slot = model.new_slot(128)
    prefill(model, slot, PROMPT)
    logits_of(model, slot, random_tree(np.random.default_rng(4), 16, model.vocab_size))
    slot.truncate(25)
    text = [*PROMPT[:25], 50, 60]
    assert_close(read(model, slot, [50, 60])[0], reference_logits(reference, text)[-1])
    assert slot.length == 27


@pytest.mark.parametrize("held", [0, 30])
def test_a_copied_beginning_reads_like_text_from_scratch(pair, held):
    model, reference = pair
    source, slot = model.new_slot(64), model.new_slot(128)
    prefill(model, source, PROMPT)
    prefill(model, slot, [9] * held)
    slot.copy_from(source, 20)
    assert slot.length == 20
    assert_close(
        read(model, slot, [5, 6])[0], reference_logits(reference, [*PROMPT[:20], 5, 6])[-1]
    )
    assert source.length == len(PROMPT)
    most = max(held, 22)  # tokens that the slot ever held
    assert slot.num_bytes * len(PROMPT) >= source.num_bytes * most > 0


@pytest.mark.parametrize(
    ("unread", "most", "pieces"),
    [
        (0, 128, []),
        (300, 128, [128, 128, 44]),
        (1000, 512, [512, 256, 128, 104]),
        (600, 256, [256, 256, 88]),
    ],
)
def test_a_prompt_is_read_in_the_longest_pieces_that_it_fills(unread, most, pieces):
    read = list[int]()
    while rows := piece_rows(unread - sum(read), most):
        read.append(rows)
    assert read == pieces


def test_more_rows_than_a_step_takes_or_than_fit_are_refused(pair):
    model, _ = pair
    step = StepInput(model.new_slot(400), TokenTree.chain([9] * 129), has_head=False)
    with pytest.raises(ValueError, match="a step takes 128 rows, not 129"):
        model.begin([step])
    slot = model.new_slot(8)
    prefill(model, slot, [1, 2, 3, 4, 5, 6])
    for has_head in (True, False):
        with pytest.raises(ValueError, match=r"6 \+ 3 tokens exceed the slot's 8"):
            model.begin([StepInput(slot, TokenTree.chain([7, 8, 9]), has_head=has_head)])


def test_a_long_prompt_is_read_in_pieces_and_the_widest_tree_behind_it(pair):
    """A piece boundary, wherever it falls, leaves no trace in the logits."""
    model, reference = pair
    rng = np.random.default_rng(5)
    text = rng.integers(7, 290, size=300).tolist()
    slot, tree = model.new_slot(500), random_tree(rng, MAX_ROWS, model.vocab_size)
    prefill(model, slot, text)
    assert_close(logits_of(model, slot, tree), expected_logits(reference, text, tree))


def test_beyond_what_a_tree_has_rows_follow_each_other():
    parents = np.arange(-1, 199, dtype=np.int32)
    assert TokenTree(np.zeros(200, np.int64), parents).num_rows == 200
    parents[150] = 7
    with pytest.raises(ValueError, match="of more than 128 rows each follows the one before it"):
        TokenTree(np.zeros(200, np.int64), parents)
