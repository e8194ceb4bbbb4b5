"""The GPU's model on the CPU, kernel by kernel in PyTorch: it says what transformers says."""

from unittest.mock import Mock

import numpy as np
import pytest
import torch

from engine.config import Sampling
from engine.drafting.drafter import Drafter
from engine.errors import NoSpaceError
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.gpu.launches import Launch
from engine.model.gpu.step_graphs import StepGraphs
from engine.model.sampling import choose
from engine.model.token_tree import MAX_ROWS, TokenTree, verify
from engine.prompt_cache import PromptCache
from kernels.operations import PORTABLE
from tests.support.adversary import Adversary
from tests.support.gpu_models import gpu_qwen2
from tests.support.greedy import greedy
from tests.support.steps import decoded, decoder_behind, logits_of, text_of
from tests.support.tiny_models import tiny_model
from tests.support.trees import expected_logits, random_tree

pytestmark = pytest.mark.usefixtures("one_thread")

PROMPT = list(range(20, 57))
BRANCHED = [*PROMPT, 5, 7, 8]
TAIL = TokenTree.chain([9])
GREEDY = Sampling()


@pytest.fixture(params=[None, PORTABLE], ids=["as a GPU", "portable"])
def model(reference, request):
    """In steps of the kernels' shapes, and of those of PyTorch where there are no kernels."""
    return gpu_qwen2(reference, operations=request.param)


def prompted(model, prompt=PROMPT, capacity=600):
    slot = model.new_slot(capacity)
    prefill(model, slot, prompt)
    return slot


def keep_a_branch(model, slot):
    """The second of a tree's branches is accepted, so that the next step has to move it."""
    logits_of(model, slot, TokenTree(np.array([5, 6, 7, 8]), np.array([-1, 0, 0, 2], np.int32)))
    slot.commit([0, 2, 3])


def branched(model):
    """A slot of the text `BRANCHED`."""
    slot = prompted(model)
    keep_a_branch(model, slot)
    return slot


def assert_close(actual, expected):
    torch.testing.assert_close(actual, expected.float(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("num_rows", [1, 2, 9, 40, 128])
def test_every_row_of_a_tree_says_what_its_own_text_says(model, reference, num_rows):
    slot = prompted(model)
    tree = random_tree(np.random.default_rng(num_rows), num_rows, model.vocab_size)
    assert_close(logits_of(model, slot, tree), expected_logits(reference, PROMPT, tree))


@pytest.mark.parametrize("length", [1, 63, 64, 65, 127, 128, 129, 300])
def test_prompts_of_any_length_are_read_in_pieces(model, reference, length):
    prompt = [int(token) for token in np.random.default_rng(length).integers(7, 290, length)]
    slot = prompted(model, prompt)
    assert slot.length == length
    tree = TokenTree.chain([11, 12])
    assert_close(logits_of(model, slot, tree), expected_logits(reference, prompt, tree))


def test_what_a_step_keeps_is_there_in_the_next_one(model, reference):
    slot, text = prompted(model), list(PROMPT)
    rng = np.random.default_rng(3)
    for _ in range(6):
        tree = random_tree(rng, 20, model.vocab_size)
        assert_close(logits_of(model, slot, tree), expected_logits(reference, text, tree))
        path = [0]
        children = [row for row in range(20) if tree.parents[row] == path[-1]]
        while children:
            path.append(children[-1])  # not the first one, so that rows have to move
            children = [row for row in range(20) if tree.parents[row] == path[-1]]
        slot.commit(path)
        text += tree.token_ids[path].tolist()
    assert slot.length == len(text)


def test_a_copy_holds_what_its_source_was_still_to_keep(model, reference):
    slot, other = branched(model), model.new_slot(300)
    other.copy_from(slot, len(PROMPT) + 3)
    expected = expected_logits(reference, BRANCHED, TAIL)
    assert_close(logits_of(model, other, TAIL), expected)
    assert_close(logits_of(model, slot, TAIL), expected)


def test_a_copy_of_a_slot_whose_step_is_under_way_has_what_that_step_keeps(model, reference):
    """That step moves those rows, and it was started before the copy."""
    slot, other = branched(model), model.new_slot(300)
    flight = model.begin([StepInput(slot, TAIL)])
    other.copy_from(slot, len(PROMPT) + 3)
    (output,) = flight.finish()
    expected = expected_logits(reference, BRANCHED, TAIL)
    assert_close(logits_of(model, other, TAIL), expected)
    assert output.chosen.tolist() == expected.argmax(dim=-1).tolist()


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_truncation_takes_back_what_was_to_be_kept(model, reference, kept):
    slot, text = branched(model), BRANCHED[: len(PROMPT) + kept]
    slot.truncate(len(text))
    assert_close(logits_of(model, slot, TAIL), expected_logits(reference, text, TAIL))


def test_a_step_that_is_dropped_keeps_what_the_one_before_had_accepted(model, reference):
    """Nobody waits for it, and it has moved those rows."""
    slot = branched(model)
    dropped = StepInput(slot, TokenTree.chain([1]))
    flight = model.begin([dropped])
    dropped.is_dropped = True
    assert flight.finish() == [None]
    assert_close(logits_of(model, slot, TAIL), expected_logits(reference, BRANCHED, TAIL))


def test_steps_of_several_sequences_share_one_launch(model, reference):
    """Each row says what it says alone, whatever else is in the step."""
    prompts = [PROMPT, PROMPT[:5], list(range(100, 230))]
    slots = [prompted(model, prompt) for prompt in prompts]
    trees = [random_tree(np.random.default_rng(n), 4 + n, model.vocab_size) for n in range(3)]
    outputs = model.begin(list(map(StepInput, slots, trees))).finish()
    for slot, tree, prompt, output in zip(slots, trees, prompts, outputs, strict=True):
        assert output.step_rows == sum(one.num_rows for one in trees)
        expected = expected_logits(reference, prompt, tree)
        assert output.chosen.tolist() == expected.argmax(dim=-1).tolist()
        slot.commit(output.path.tolist())


class RunAtOnce(Launch):
    """As a graph that is captured, which runs once when it is made."""

    def __init__(self, memory, forward):
        super().__init__(memory, forward)
        self.start()


def test_more_rows_than_a_step_has_are_served_in_two_and_both_keep_their_logits(
    model, reference, monkeypatch
):
    """Though the second one's shape may be made while those of the first are to be read."""
    monkeypatch.setattr(
        StepGraphs, "_make", lambda graphs, memory: RunAtOnce(memory, graphs.forward)
    )
    slots = [prompted(model), prompted(model)]
    trees = [random_tree(np.random.default_rng(n), n, model.vocab_size) for n in (100, 40)]
    steps = [
        StepInput(slot, tree, wants_logits=True) for slot, tree in zip(slots, trees, strict=True)
    ]
    for tree, output in zip(trees, model.begin(steps).finish(), strict=True):
        assert_close(torch.from_numpy(output.logits), expected_logits(reference, PROMPT, tree))


def test_a_prompt_is_read_beside_steps_and_beside_other_prompts(model, reference):
    """Pieces of prompts have launches of their own, one after the other in one flight."""
    slots = [prompted(model), model.new_slot(300), model.new_slot(300)]
    pieces = [TokenTree.chain(PROMPT[:20]), TokenTree.chain(PROMPT[3:23])]
    tree = TokenTree.chain([9, 8])
    reading = [
        StepInput(slot, piece, has_head=False)
        for slot, piece in zip(slots[1:], pieces, strict=True)
    ]
    output, *nothing = model.begin([StepInput(slots[0], tree), *reading]).finish()
    assert nothing == [None, None]
    expected = expected_logits(reference, PROMPT, tree)
    assert output.chosen.tolist() == expected.argmax(dim=-1).tolist()
    for slot, text in zip(slots[1:], (PROMPT[:20], PROMPT[3:23]), strict=True):
        slot.commit(range(20))
        assert_close(logits_of(model, slot, tree), expected_logits(reference, text, tree))


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(0.8, seed=4)], ids=["greedy", "drawn"])
def test_rows_with_a_constraint_are_chosen_on_the_host(model, reference, sampling):
    tree = TokenTree(np.array([5, 1, 2, 3]), np.array([-1, 0, 0, 1], np.int32))
    allowed = [np.array([3, 4]), None, None, np.array([0])]
    slot, logits = prompted(model), expected_logits(reference, PROMPT, tree)
    output = run_step(model, StepInput(slot, tree, sampling, allowed))
    positions = len(PROMPT) + 1 + tree.depths
    expected = choose(logits.float().numpy(), positions, sampling, allowed)
    assert output.chosen[[0, 3]].tolist() == expected[[0, 3]].tolist()
    assert output.path.tolist() == verify(tree.token_ids, tree.parents, output.chosen).tolist()


def test_a_flight_that_fails_leaves_all_slots_as_they_were(model, reference, monkeypatch):
    """As where the memory for a new shape of step is not there."""
    slots = [branched(model), prompted(model)]
    with monkeypatch.context() as patch:
        patch.setattr(StepGraphs, "launch", Mock(side_effect=NoSpaceError("no room")))
        with pytest.raises(NoSpaceError):
            model.begin([StepInput(slot, TokenTree.chain([3])) for slot in slots])
    assert_close(logits_of(model, slots[0], TAIL), expected_logits(reference, BRANCHED, TAIL))
    output = run_step(model, StepInput(slots[1], TAIL))
    assert output.step_rows == 1, "nothing of what failed is left"
    assert output.chosen[0] == expected_logits(reference, PROMPT, TAIL)[0].argmax()


def test_outputs_that_cannot_come_are_not_waited_for_again(model, monkeypatch):
    """A launch whose outputs never came, as after an error of the device, ends all of its steps."""
    slots = [prompted(model), prompted(model)]
    flight = model.begin([StepInput(slot, TokenTree.chain([3])) for slot in slots])
    with monkeypatch.context() as patch:
        patch.setattr(Launch, "wait", Mock(side_effect=RuntimeError("the device is gone")))
        with pytest.raises(RuntimeError, match="gone"):
            flight.finish()
    flight.wait()


def test_after_a_reading_that_failed_the_same_prompt_is_continued_as_ever(
    model, reference, monkeypatch
):
    """That reading was to move what the last step kept; nobody may take it for moved."""
    cache = PromptCache(model, 10**9)

    def lease(token_ids):
        lease = cache.lease("a", token_ids, MAX_ROWS + 24)
        try:
            while len(unread := lease.unread):
                step = StepInput(lease.slot, TokenTree.chain(unread), has_head=False)
                model.begin([step]).finish()
                lease.commit_read(len(unread))
        except RuntimeError:
            lease.spoil()
            lease.close()
            raise
        return lease

    entered = lease(PROMPT)
    keep_a_branch(model, entered.slot)
    entered.commit_written([5, 7, 8])
    entered.close()
    longer = [*BRANCHED, 10, 11]
    with monkeypatch.context() as patch:
        patch.setattr(Launch, "start", Mock(side_effect=RuntimeError("the launch failed")))
        with pytest.raises(RuntimeError):
            lease(longer[:-1])
    slot = lease(longer[:-1]).slot
    steps = written(model, slot, Drafter(), prompt=longer)
    assert text_of(steps) == greedy(reference, longer, 24)


def test_a_copy_for_which_there_is_no_memory_leaves_its_source_whole(model, reference, monkeypatch):
    slot, other = branched(model), model.new_slot(300)
    with monkeypatch.context() as patch:
        patch.setattr(StepGraphs, "on_stream", Mock(side_effect=torch.OutOfMemoryError("2 GiB")))
        with pytest.raises(torch.OutOfMemoryError):
            other.copy_from(slot, len(PROMPT) + 3)
    assert_close(logits_of(model, slot, TAIL), expected_logits(reference, BRANCHED, TAIL))


def written(model, slot, drafter, sampling=GREEDY, prompt=PROMPT):
    """The steps that write 24 tokens behind a prompt of which the slot holds all but the last one."""
    return decoded(model, decoder_behind(slot, drafter, sampling, prompt, 24))


def assert_drafts_change_the_steps_and_not_the_text(model, sampling, truth):
    """Return the text."""
    slots = [prompted(model, PROMPT[:-1]) for _ in range(2)]
    plain = text_of(written(model, slots[0], Drafter(), sampling))
    adversary = Adversary(plain, len(PROMPT), model.vocab_size, 30, truth, seed=1)
    steps = written(model, slots[1], adversary, sampling)
    assert text_of(steps)[:24] == plain
    assert slots[1].length == len(PROMPT) - 1 + len(text_of(steps))
    assert len(steps) < 24
    return plain


@pytest.mark.parametrize("truth", [0.3, 0.9])
def test_what_is_drawn_is_the_same_with_drafts(model, truth):
    assert_drafts_change_the_steps_and_not_the_text(model, Sampling(0.8, seed=3), truth)


@pytest.mark.parametrize("truth", [0.3, 0.9])
def test_writes_what_transformers_writes_with_drafts_and_without(model, reference, truth):
    plain = assert_drafts_change_the_steps_and_not_the_text(model, GREEDY, truth)
    assert plain == greedy(reference, PROMPT, 24)


LLAMAS = {
    "as Seed-Coder-8B": {"num_attention_heads": 16, "num_key_value_heads": 4, "hidden_size": 64},
    "heads apart from the hidden size": {"num_key_value_heads": 4, "head_dim": 16},
}


@pytest.mark.parametrize("shape", LLAMAS.values(), ids=LLAMAS)
def test_a_llama_says_what_transformers_says(shape):
    """It is a Qwen2 without biases."""
    reference = tiny_model("llama", 1, **shape)
    model = gpu_qwen2(reference)
    slot, tree = prompted(model), random_tree(np.random.default_rng(4), 40, model.vocab_size)
    assert_close(logits_of(model, slot, tree), expected_logits(reference, PROMPT, tree))
    plain = assert_drafts_change_the_steps_and_not_the_text(model, GREEDY, 0.7)
    assert plain == greedy(reference, PROMPT, 24)


def test_a_slot_that_nobody_knows_gives_its_memory_back(model):
    for _ in range(10):
        model.new_slot(1500)
    assert model.arena.free_positions >= 2048 - 1536


def test_pieces_of_a_prompt_are_short_beside_other_sequences(reference):
    """They wait for its end: so long as there are others, and from the step behind them no more."""
    model = gpu_qwen2(reference)
    slots = [model.new_slot(200), model.new_slot(200)]
    steps = [StepInput(slot, TokenTree.chain([5])) for slot in slots]
    assert model.most_read_rows == 256
    model.begin(steps).finish()
    assert model.most_read_rows == 128
    for few in (steps[:1], []):  # one of them, and nobody while one waits for a slot
        model.begin(few).finish()
        assert model.most_read_rows == 256
