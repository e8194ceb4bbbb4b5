"""The sacred test in the arithmetic of a GPU, bit by bit in bfloat16: Triton's kernels, and PyTorch.

Without a GPU the kernels run in Triton's interpreter, which proves that the order of all sums is fixed.
"""

from functools import cache

import numpy as np
import pytest
import torch
from triton import knobs

from engine.config import Sampling
from engine.drafting.drafter import Drafter
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.gpu.buffers import StepShape
from engine.model.token_tree import MAX_ROWS, TokenTree
from kernels.operations import PORTABLE
from tests.support.adversary import Adversary
from tests.support.fixed_order import products_in_one_order
from tests.support.gpu_models import gpu_qwen2
from tests.support.steps import written_behind
from tests.support.tiny_models import tiny_model
from tests.support.trees import path_to, random_tree

if knobs.runtime.interpret:
    import tests.support.triton_interpreter  # noqa: F401 - before any kernel is run

pytestmark = [pytest.mark.usefixtures("one_thread", "few_splits"), pytest.mark.timeout(300)]

DEVICE = torch.device("cpu" if knobs.runtime.interpret else "cuda")
PROMPT = [int(token) for token in np.random.default_rng(1).integers(7, 290, 260)]
HELD = 60
COUNT = 8
LAYERS = {"float": 1, "fp8": 2, "pytorch": 2}  # the interpreter takes a second for each


@cache
def model_of(form):
    """By the kernels, with weights in this form, or by PyTorch."""
    from kernels.operations import operations_for

    layers, is_portable = LAYERS[form], form == "pytorch"
    reference = tiny_model(
        "qwen2", 1, hidden_size=64, intermediate_size=96, num_hidden_layers=layers
    )
    return gpu_qwen2(
        reference,
        dtype=torch.bfloat16,
        quantization="float" if is_portable else form,
        operations=PORTABLE if is_portable else operations_for(torch.device("cuda")),
        device="cpu" if is_portable else DEVICE,
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


DRAWN = Sampling(temperature=0.8, seed=5)
# On the way a text crosses the end of a tile of 64 keys, of PyTorch's chunks of 128 positions.
BEHIND = [("float", 60), ("pytorch", 60), ("pytorch", 125), ("pytorch", 249)]


@pytest.mark.parametrize(
    ("form", "held", "sampling"),
    [("fp8", 60, Sampling()), ("float", 60, DRAWN)]
    + [(*behind, sampling) for behind in BEHIND[1:] for sampling in (Sampling(), DRAWN)],
)
def test_drafts_do_not_change_the_text(form, held, sampling):
    model, prompt = model_of(form), PROMPT[: held + 1]
    plain = written_behind(model, prompt, Drafter(), sampling, COUNT)
    adversary = Adversary(plain, held + 1, model.vocab_size, 12, 0.6, seed=2)
    assert written_behind(model, prompt, adversary, sampling, COUNT)[:COUNT] == plain


def output_of(model, slot, tree):
    return run_step(model, StepInput(slot, tree, wants_logits=True))


def assert_same_bits(actual, expected, rows=slice(None)):
    assert np.array_equal(actual.logits, expected.logits[rows])
    assert actual.chosen.tolist() == expected.chosen[rows].tolist()
    assert actual.log_probs.tolist() == expected.log_probs[rows].tolist()
    assert (actual.log_probs < 0).all()


@pytest.mark.parametrize(
    ("form", "held", "num_rows"),
    [("float", 60, 70), *((*behind, 16) for behind in BEHIND[1:])],
)
def test_a_row_of_a_tree_has_the_bits_of_its_text_alone(form, held, num_rows):
    model = model_of(form)
    tree = random_tree(np.random.default_rng(num_rows), num_rows, model.vocab_size)
    together = output_of(model, prompted(model, held), tree)
    for row in (num_rows // 2, num_rows - 1):
        alone = prompted(model, held)
        for ancestor in path_to(tree, row):
            answer = output_of(model, alone, TokenTree.chain([int(tree.token_ids[ancestor])]))
            alone.commit([0])
        assert_same_bits(answer, together, [row])


@pytest.mark.parametrize(("form", "held"), BEHIND[:3])
def test_a_row_has_the_same_bits_beside_other_sequences(form, held):
    model = model_of(form)
    tree = random_tree(np.random.default_rng(9), 9, model.vocab_size)
    slots = [prompted(model, 17), prompted(model, held), prompted(model, 60)]
    trees = [TokenTree.chain([3, 4]), tree, TokenTree.chain([8])]
    steps = [
        StepInput(slot, one, wants_logits=True) for slot, one in zip(slots, trees, strict=True)
    ]
    beside = model.begin(steps).finish()[1]
    assert beside.step_rows == 12
    assert_same_bits(beside, output_of(model, prompted(model, held), tree))


def test_a_prompt_has_the_same_bits_however_it_was_read(model):
    """Read in one piece, in two, or token by token."""
    whole, halves, singly = prompted(model), prompted(model, 13), prompted(model, 56)
    prefill(model, halves, PROMPT[13:HELD])
    for token in PROMPT[56:HELD]:
        output_of(model, singly, TokenTree.chain([token]))
        singly.commit([0])
    first, *others = (
        output_of(model, slot, TokenTree.chain([5])) for slot in (whole, halves, singly)
    )
    for other in others:
        assert_same_bits(other, first)


def test_a_long_piece_of_a_prompt_leaves_the_bits_of_short_ones(model):
    """Behind a text that fills no tile, and longer than the programs of one tile take rows."""
    prompt = [int(token) for token in np.random.default_rng(2).integers(7, 290, 13 + 256)]
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
