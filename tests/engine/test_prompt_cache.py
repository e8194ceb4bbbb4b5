"""A prompt pays for what differs from those before it, and for nothing after a cancel."""

import pytest
import torch

from engine.prompt_cache import PromptCache


class CountingSlot:
    """Remembers what was prefilled."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.held: list[int] = []
        self.pieces: list[list[int]] = []

    @property
    def length(self):
        return len(self.held)

    @property
    def num_bytes(self):
        return self.capacity

    def copy_from(self, other, length):
        self.held = other.held[:length]

    def truncate(self, length):
        del self.held[length:]

    def prefill(self, token_ids):
        self.pieces.append(list(token_ids))
        self.held += token_ids
        return torch.zeros(1, 4)


class CountingModel:
    """Hands out slots and keeps them."""

    def __init__(self) -> None:
        self.slots: list[CountingSlot] = []

    def new_slot(self, capacity):
        self.slots.append(CountingSlot(capacity))
        return self.slots[-1]


@pytest.fixture
def model():
    return CountingModel()


@pytest.fixture
def cache(model):
    return PromptCache(model, 3 * 512)


def never() -> bool:
    return False


def test_the_common_prefix_is_not_read_again(cache):
    cache.enter("a", [1, 2, 3, 4], 10, never)
    slot, reused = cache.enter("a", [1, 2, 9], 10, never)
    assert slot.held == [1, 2, 9]
    assert slot.pieces == [[1, 2, 3, 4], [9]]
    assert reused == 2


def test_what_was_generated_is_forgotten_unless_it_is_told(cache):
    cache.enter("a", [1, 2], 10, never).slot.held.extend([7, 8])
    assert cache.enter("a", [1, 2], 10, never).slot.held == [1, 2]


def test_a_prompt_that_goes_on_as_generated_is_not_read_again(cache):
    slot, _ = cache.enter("a", [1, 2], 10, never)
    slot.held.extend([7, 8])
    cache.keep("a", [1, 2, 7, 8, 9])  # the last token is not committed yet
    slot, reused = cache.enter("a", [1, 2, 7, 8, 9], 10, never)
    assert slot.held == [1, 2, 7, 8, 9]
    assert reused == 4


def test_documents_keep_their_prompts_side_by_side(cache, model):
    cache.enter("a", [1, 2, 3], 10, never)
    cache.enter("b", [4, 5, 6], 10, never)
    assert cache.enter("a", [1, 2, 3], 10, never).reused == 3
    assert len(model.slots) == 2


def test_a_prompt_begins_with_what_another_slot_holds_and_leaves_that_whole(cache, model):
    cache.enter("a", [1, 2, 3], 10, never)
    slot, reused = cache.enter("a, accepted", [1, 2, 9], 10, never)
    assert slot.held == [1, 2, 9]
    assert reused == 2
    assert model.slots[0].held == [1, 2, 3]


def test_the_least_recently_used_slot_goes_when_memory_is_short(cache):
    for key, token in (("a", 1), ("b", 2), ("c", 3), ("a", 1), ("d", 4)):
        cache.enter(key, [token], 10, never)
    assert cache.num_bytes == 3 * 512
    assert cache.enter("a", [1], 10, never).reused == 1
    assert cache.enter("b", [2], 10, never).reused == 0


def test_a_prompt_larger_than_the_budget_is_served_alone(cache):
    cache.enter("a", [1], 10, never)
    slot, _ = cache.enter("b", [2] * 2000, 10, never)
    assert cache.num_bytes == slot.capacity


def test_a_longer_prompt_gets_a_larger_slot_and_keeps_what_was_read(cache, model):
    cache.enter("a", [1], 10, never)
    slot, reused = cache.enter("a", [1] * 600, 10, never)
    assert len(model.slots) == 2
    assert slot.capacity == 1024
    assert reused == 1


def test_a_cancel_keeps_the_pieces_that_were_read(cache):
    answers = iter([False, True])
    assert cache.enter("a", list(range(300)), 10, lambda: next(answers)) is None
    slot, _ = cache.enter("a", list(range(300)), 10, never)
    assert slot.held == list(range(300))
    assert [len(piece) for piece in slot.pieces] == [128, 128, 44]
