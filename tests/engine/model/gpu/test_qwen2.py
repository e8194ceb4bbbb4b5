"""The GPU's model on the CPU, kernel by kernel in PyTorch: it says what transformers says."""

import numpy as np
import pytest
import torch

from engine.config import Sampling
from engine.decoding.decoder import Decoder, NoDrafts
from engine.decoding.stepping import stepper_of
from engine.errors import NoSpaceError
from engine.model.causal_lm import SteppingSlot
from engine.model.constraint import Unconstrained
from engine.model.gpu.step_graphs import EagerLaunch, StepGraphs
from engine.model.step_order import StepOrder
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.prompt_cache import PromptCache
from engine.turns import run_to_end
from tests.support.adversary import Adversary
from tests.support.greedy import greedy
from tests.support.trees import expected_logits, random_tree

pytestmark = pytest.mark.usefixtures("one_thread")

PROMPT = list(range(20, 57))
GREEDY = Sampling()


def prompted(model, prompt=PROMPT, capacity=600):
    slot = model.new_slot(capacity)
    slot.prefill(prompt)
    return slot


def assert_close(actual, expected):
    torch.testing.assert_close(actual, expected.float(), rtol=1e-3, atol=1e-3)


def test_is_a_slot_that_chooses_by_itself(model):
    assert isinstance(model.new_slot(200), SteppingSlot)


@pytest.mark.parametrize("num_rows", [1, 2, 9, 40, 128])
def test_every_row_of_a_tree_says_what_its_own_text_says(model, reference, num_rows):
    slot = prompted(model)
    tree = random_tree(np.random.default_rng(num_rows), num_rows, model.vocab_size)
    assert_close(slot.step(tree), expected_logits(reference, PROMPT, tree))


@pytest.mark.parametrize("length", [1, 63, 64, 65, 127, 128, 129, 300])
def test_prompts_of_any_length_are_read_in_pieces(model, reference, length):
    prompt = [int(token) for token in np.random.default_rng(length).integers(7, 290, length)]
    slot = prompted(model, prompt)
    assert slot.length == length
    tree = TokenTree.chain([11, 12])
    assert_close(slot.step(tree), expected_logits(reference, prompt, tree))


def test_what_a_step_keeps_is_there_in_the_next_one(model, reference):
    slot, text = prompted(model), list(PROMPT)
    rng = np.random.default_rng(3)
    for _ in range(6):
        tree = random_tree(rng, 20, model.vocab_size)
        assert_close(slot.step(tree), expected_logits(reference, text, tree))
        path = [0]
        children = [row for row in range(20) if tree.parents[row] == path[-1]]
        while children:
            path.append(children[-1])  # not the first one, so that rows have to move
            children = [row for row in range(20) if tree.parents[row] == path[-1]]
        slot.commit(path)
        text += tree.token_ids[path].tolist()
    assert slot.length == len(text)


def test_a_copy_holds_what_its_source_was_still_to_keep(model, reference):
    slot = prompted(model)
    tree = TokenTree(np.array([5, 6, 7, 8]), np.array([-1, 0, 0, 2], np.int32))
    slot.step(tree)
    slot.commit([0, 2, 3])
    other = model.new_slot(300)
    other.copy_from(slot, len(PROMPT) + 3)
    tail = TokenTree.chain([9])
    expected = expected_logits(reference, [*PROMPT, 5, 7, 8], tail)
    assert_close(other.step(tail), expected)
    assert_close(slot.step(tail), expected)


def test_a_copy_of_a_slot_whose_step_waits_has_what_that_step_keeps(model, reference):
    """Until the step is launched, nobody has moved those rows; and they are moved once only."""
    slot = prompted(model)
    slot.step(TokenTree(np.array([5, 6, 7, 8]), np.array([-1, 0, 0, 2], np.int32)))
    slot.commit([0, 2, 3])
    model.expect(2)
    slot.begin(StepOrder(TokenTree.chain([9]), GREEDY))
    other = model.new_slot(300)
    other.copy_from(slot, len(PROMPT) + 3)
    tail = TokenTree.chain([9])
    expected = expected_logits(reference, [*PROMPT, 5, 7, 8], tail)
    assert_close(other.step(tail), expected)
    assert slot.finish().chosen.tolist() == expected.argmax(dim=-1).tolist()


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_truncation_takes_back_what_was_to_be_kept(model, reference, kept):
    slot = prompted(model)
    slot.step(TokenTree(np.array([5, 6, 7, 8]), np.array([-1, 0, 0, 2], np.int32)))
    slot.commit([0, 2, 3])
    slot.truncate(len(PROMPT) + kept)
    tail = TokenTree.chain([9])
    text = [*PROMPT, 5, 7, 8][: len(PROMPT) + kept]
    assert_close(slot.step(tail), expected_logits(reference, text, tail))


def test_a_step_that_is_given_up_keeps_what_the_one_before_had_accepted(model, reference):
    """It may not have been launched, and then nobody has moved those rows."""
    model.expect(2)
    slot = prompted(model)
    slot.step(TokenTree(np.array([5, 6, 7]), np.array([-1, 0, 0], np.int32)))
    slot.commit([0, 2])
    slot.begin(StepOrder(TokenTree.chain([1]), GREEDY))
    slot.abandon()
    tail = TokenTree.chain([9])
    assert_close(slot.step(tail), expected_logits(reference, [*PROMPT, 5, 7], tail))


def test_steps_of_several_sequences_share_one_launch(model, reference):
    """Each row says what it says alone, whatever else is in the step."""
    prompts = [PROMPT, PROMPT[:5], list(range(100, 230))]
    slots = [prompted(model, prompt) for prompt in prompts]
    trees = [random_tree(np.random.default_rng(n), 4 + 9 * n, model.vocab_size) for n in range(3)]
    model.expect(3)
    for slot, tree in zip(slots, trees, strict=True):
        slot.begin(StepOrder(tree, GREEDY))
    for slot, tree, prompt in zip(slots, trees, prompts, strict=True):
        answer = slot.finish()
        assert answer.step_rows == sum(one.num_rows for one in trees)
        expected = expected_logits(reference, prompt, tree)
        assert answer.chosen.tolist() == expected.argmax(dim=-1).tolist()
        slot.commit(answer.rows.tolist())


def test_more_rows_than_a_step_has_are_served_in_two(model, reference):
    slots = [prompted(model), prompted(model)]
    trees = [random_tree(np.random.default_rng(n), 100, model.vocab_size) for n in range(2)]
    model.expect(2)
    for slot, tree in zip(slots, trees, strict=True):
        slot.begin(StepOrder(tree, GREEDY))
    for slot, tree in zip(slots, trees, strict=True):
        expected = expected_logits(reference, PROMPT, tree)
        assert slot.finish().chosen.tolist() == expected.argmax(dim=-1).tolist()


def test_a_step_that_fails_takes_no_other_along(model, reference, monkeypatch):
    """As where the memory for a new shape of step is not there."""
    slots, order = [prompted(model), prompted(model)], StepOrder(TokenTree.chain([3]), GREEDY)
    slots[0].step(TokenTree(np.array([5, 6, 7]), np.array([-1, 0, 0], np.int32)))
    slots[0].commit([0, 2])
    model.expect(2)
    slots[0].begin(order)
    with monkeypatch.context() as patch:
        patch.setattr(type(model.graphs), "launch", raising(NoSpaceError("no room")))
        with pytest.raises(NoSpaceError):
            slots[1].begin(order)
        with pytest.raises(NoSpaceError):
            slots[0].finish()
        slots[0].abandon()
    model.expect(1)
    tail = TokenTree.chain([9])
    assert_close(slots[0].step(tail), expected_logits(reference, [*PROMPT, 5, 7], tail))
    slots[1].begin(StepOrder(tail, GREEDY))
    answer = slots[1].finish()
    assert answer.step_rows == 1, "nothing of what failed is left"
    assert answer.chosen[0] == expected_logits(reference, PROMPT, tail)[0].argmax()


def test_an_answer_that_cannot_come_is_not_waited_for(model, monkeypatch):
    """A launch whose outputs never came, as after an error of the device, ends all of its steps."""
    slots, order = [prompted(model), prompted(model)], StepOrder(TokenTree.chain([3]), GREEDY)
    model.expect(2)
    with monkeypatch.context() as patch:
        patch.setattr(EagerLaunch, "wait", raising(RuntimeError("the device is gone")))
        for slot in slots:
            slot.begin(order)
        with pytest.raises(RuntimeError, match="gone"):
            slots[0].finish()
    with pytest.raises(RuntimeError, match="failed"):
        slots[1].finish()


def test_after_a_reading_that_failed_the_same_prompt_is_continued_as_ever(
    model, reference, monkeypatch
):
    """That reading was to move what the last step kept; nobody may take it for moved."""
    cache = PromptCache(model, 10**9)

    def enter(token_ids):
        return run_to_end(cache.enter("a", token_ids, MAX_ROWS + 24, lambda: False))

    entered = enter(PROMPT)
    entered.slot.step(TokenTree(np.array([5, 6, 7, 8]), np.array([-1, 0, 0, 2], np.int32)))
    entered.slot.commit([0, 2, 3])
    entered.leave([*PROMPT, 5, 7, 8])
    longer = [*PROMPT, 5, 7, 8, 10, 11]
    with monkeypatch.context() as patch:
        patch.setattr(EagerLaunch, "start", raising(RuntimeError("the launch failed")))
        with pytest.raises(RuntimeError):
            enter(longer[:-1])
    slot = enter(longer[:-1]).slot
    assert written(slot, NoDrafts(), GREEDY, longer)[0] == greedy(reference, longer, 24)


def test_a_copy_for_which_there_is_no_memory_leaves_its_source_whole(model, reference, monkeypatch):
    slot, other = prompted(model), model.new_slot(300)
    slot.step(TokenTree(np.array([5, 6, 7, 8]), np.array([-1, 0, 0, 2], np.int32)))
    slot.commit([0, 2, 3])
    with monkeypatch.context() as patch:
        patch.setattr(StepGraphs, "on_stream", raising(torch.OutOfMemoryError("2 GiB")))
        with pytest.raises(torch.OutOfMemoryError):
            other.copy_from(slot, len(PROMPT) + 3)
    tail = TokenTree.chain([9])
    assert_close(slot.step(tail), expected_logits(reference, [*PROMPT, 5, 7, 8], tail))


def raising(error):
    def fail(*_):
        raise error

    return fail


def test_top_tokens_begin_with_the_choice(model):
    slot = prompted(model)
    slot.begin(StepOrder(TokenTree.chain([3, 4]), GREEDY))
    answer = slot.finish()
    assert answer.top_tokens()[:, 0].tolist() == answer.chosen.tolist()


SAMPLINGS = {
    "greedy": GREEDY,
    "seeded": Sampling(temperature=0.8, seed=3),
    "nucleus": Sampling(temperature=0.8, top_p=0.9, seed=3),
}


def decode(model, drafter, sampling, count=24):
    slot = prompted(model, PROMPT[:-1], len(PROMPT) + count + MAX_ROWS)
    token_ids, steps = written(slot, drafter, sampling, PROMPT, count)
    assert slot.length == len(PROMPT) - 1 + len(token_ids)
    return token_ids, steps


def written(slot, drafter, sampling, prompt, count=24):
    """What follows a prompt of which the slot holds all but the last token, and the steps."""
    decoder = Decoder(stepper_of(slot), drafter, sampling, Unconstrained(), lambda: False)
    steps = list(decoder.steps(prompt[-1], prompt, count))
    return [token for step in steps for token in step.token_ids], steps


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("truth", [0.3, 0.9])
def test_drafts_change_the_steps_and_not_the_text(model, sampling, truth):
    plain, _ = decode(model, NoDrafts(), sampling)
    adversary = Adversary(plain, len(PROMPT), model.vocab_size, 30, truth, seed=1)
    drafted, steps = decode(model, adversary, sampling)
    assert drafted[:24] == plain
    assert len(steps) < 24


def test_writes_what_transformers_writes(model, reference):
    assert decode(model, NoDrafts(), GREEDY)[0] == greedy(reference, PROMPT, 24)


def test_a_seed_says_what_is_drawn(model):
    texts = [decode(model, NoDrafts(), Sampling(1.0, seed=seed))[0] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_memory_that_is_not_there_is_refused_with_the_numbers(model):
    slot = model.new_slot(1900)
    with pytest.raises(NoSpaceError, match="320 tokens: 128 of 2,048 are free"):
        model.new_slot(300)
    assert slot.capacity == 1900


def test_a_slot_that_nobody_knows_gives_its_memory_back(model):
    for _ in range(10):
        model.new_slot(1500)
    assert model.arena.free_positions >= 2048 - 1536
