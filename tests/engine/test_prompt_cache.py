"""A prompt pays for what differs from the last one, and for nothing after a cancel."""

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


def never() -> bool:
    return False


def test_the_common_prefix_is_not_read_again(model):
    cache = PromptCache(model)
    cache.enter([1, 2, 3, 4], 10, never)
    slot = cache.enter([1, 2, 9], 10, never)
    assert slot.held == [1, 2, 9]
    assert slot.pieces == [[1, 2, 3, 4], [9]]


def test_what_was_generated_is_forgotten(model):
    cache = PromptCache(model)
    cache.enter([1, 2], 10, never).held.extend([7, 8])
    assert cache.enter([1, 2], 10, never).held == [1, 2]


def test_a_longer_prompt_gets_a_larger_slot(model):
    cache = PromptCache(model)
    cache.enter([1], 10, never)
    slot = cache.enter([1] * 50, 10, never)
    assert len(model.slots) == 2
    assert slot.capacity == 60


def test_a_cancel_keeps_the_pieces_that_were_read(model):
    cache = PromptCache(model)
    answers = iter([False, True])
    assert cache.enter(list(range(300)), 10, lambda: next(answers)) is None
    slot = cache.enter(list(range(300)), 10, never)
    assert slot.held == list(range(300))
    assert [len(piece) for piece in slot.pieces] == [128, 128, 44]
