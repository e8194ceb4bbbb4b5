"""The sacred test in the arithmetic of a GPU: Triton's kernels, bfloat16, bit by bit.

Without a GPU they run in Triton's interpreter, which proves that the order of all sums is fixed.
"""

from functools import cache

import numpy as np
import pytest
import torch
from triton import knobs

from engine.config import Sampling
from engine.drafting.drafter import NoDrafts
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.gpu.buffers import StepShape
from engine.model.token_tree import MAX_ROWS, TokenTree
from tests.support.adversary import Adversary
from tests.support.fixed_order import products_in_one_order
from tests.support.gpu_models import gpu_qwen2
from tests.support.steps import decoded, decoder_behind, text_of
from tests.support.tiny_models import tiny_model
from tests.support.trees import path_to, random_tree

if knobs.runtime.interpret:
    import tests.support.triton_interpreter  # noqa: F401 - before any kernel is run

pytestmark = [pytest.mark.usefixtures("one_thread", "few_splits"), pytest.mark.timeout(300)]

DEVICE = torch.device("cpu" if knobs.runtime.interpret else "cuda")
PROMPT = [int(token) for token in np.random.default_rng(1).integers(7, 290, 61)]
HELD = len(PROMPT) - 1
COUNT = 10


@cache
def model_of(quantization):
    from kernels.operations import operations_for

    reference = tiny_model(
        "qwen2",
        1,
        num_attention_heads=4,
        num_key_value_heads=2,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
    )
    return gpu_qwen2(
        reference,
        dtype=torch.bfloat16,
        quantization=quantization,
        operations=operations_for(torch.device("cuda")),
        device=DEVICE,
    )


@pytest.fixture
def model():
    return model_of("float")


@pytest.fixture(autouse=True)
def _one_order():
    with products_in_one_order():
        yield


def prompted(model, length=HELD):
    slot = model.new_slot(length + COUNT + 2 * MAX_ROWS)
    prefill(model, slot, PROMPT[:length])
    return slot


def decode(model, drafter, sampling):
    return text_of(
        decoded(model, decoder_behind(prompted(model), drafter, sampling, PROMPT, COUNT))
    )


@pytest.mark.parametrize(
    ("quantization", "sampling"),
    [("float", Sampling()), ("float", Sampling(temperature=0.8, seed=5)), ("fp8", Sampling())],
)
def test_drafts_do_not_change_the_text(quantization, sampling):
    model = model_of(quantization)
    plain = decode(model, NoDrafts(), sampling)
    adversary = Adversary(plain, len(PROMPT), model.vocab_size, 12, 0.6, seed=2)
    assert decode(model, adversary, sampling)[:COUNT] == plain


def output_of(model, slot, tree):
    return run_step(model, StepInput(slot, tree))


@pytest.mark.parametrize("num_rows", [24, 70])
def test_a_row_of_a_tree_has_the_bits_of_its_text_alone(model, num_rows):
    """The first place of a tile is crossed on the way: 60 tokens are there, and tiles hold 64."""
    tree = random_tree(np.random.default_rng(num_rows), num_rows, model.vocab_size)
    together = output_of(model, prompted(model), tree)
    for row in (num_rows // 2, num_rows - 1):
        alone = prompted(model)
        for ancestor in path_to(tree, row):
            answer = output_of(model, alone, TokenTree.chain([int(tree.token_ids[ancestor])]))
            alone.commit([0])
        assert answer.chosen[0] == together.chosen[row]
        assert answer.log_probs[0] == together.log_probs[row] < 0


def test_a_row_has_the_same_bits_beside_other_sequences(model):
    tree = random_tree(np.random.default_rng(9), 9, model.vocab_size)
    alone = output_of(model, prompted(model), tree)
    slots = [prompted(model, 17), prompted(model), prompted(model, 60)]
    trees = [TokenTree.chain([3, 4]), tree, TokenTree.chain([8])]
    beside = model.begin(list(map(StepInput, slots, trees))).finish()[1]
    assert beside.chosen.tolist() == alone.chosen.tolist()
    assert beside.log_probs.tolist() == alone.log_probs.tolist()


def test_a_prompt_has_the_same_bits_however_it_was_read(model):
    """Read in one piece, in two, or token by token."""
    tail = TokenTree.chain([5])
    whole, halves, singly = prompted(model), prompted(model, 13), prompted(model, 56)
    prefill(model, halves, PROMPT[13:HELD])
    for token in PROMPT[56:HELD]:
        output_of(model, singly, TokenTree.chain([token]))
        singly.commit([0])
    outputs = [output_of(model, slot, tail) for slot in (whole, halves, singly)]
    assert len({float(output.log_probs[0]) for output in outputs}) == 1
    assert len({int(output.chosen[0]) for output in outputs}) == 1


def test_a_long_piece_of_a_prompt_leaves_the_bits_of_short_ones(model):
    """Behind a text that fills no tile, and longer than the programs of one tile take rows."""
    prompt = [int(token) for token in np.random.default_rng(2).integers(7, 290, 13 + 256 + 40)]
    left = []
    for piece in (128, 256):
        slot = model.new_slot(len(prompt) + MAX_ROWS)
        for start in (0, *range(13, len(prompt), piece)):
            prefill(model, slot, prompt[start : start + piece if start else 13])
        there = slice(slot.base, slot.base + len(prompt))
        left += [torch.stack([model.arena.keys[:, :, there], model.arena.values[:, :, there]])]
    assert StepShape(256, 1, has_head=False) in model.graphs._launches
    assert left[0].count_nonzero() == left[0].numel()
    assert torch.equal(*left)
