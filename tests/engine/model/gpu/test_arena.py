"""Slots come and go; their memory is whole again when all are gone."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import NoSpaceError
from engine.model.gpu.arena import KVArena, rounded
from engine.model.model_config import QWEN_SHAPES


def small_arena():
    """1,024 positions of 3 layers, each of 2 heads of 8 numbers."""
    config = replace(QWEN_SHAPES["0.5b"], num_layers=3, head_dim=8)
    return KVArena(config, 1024, torch.float32, torch.device("cpu"))


@given(st.lists(st.tuples(st.integers(1, 300), st.booleans()), max_size=30))
def test_ranges_never_overlap_and_what_is_given_back_can_be_taken_again(wishes):
    arena = small_arena()
    taken: dict[int, int] = {}
    for count, gives_back in wishes:
        if gives_back and taken:
            start, size = taken.popitem()
            arena.give_back(start, size)
            continue
        try:
            start = arena.take(count)
        except NoSpaceError:
            continue
        ours = set(range(start, start + rounded(count)))
        assert max(ours) < 1024
        for other, size in taken.items():
            assert not ours & set(range(other, other + rounded(size)))
        taken[start] = count
    for start, size in taken.items():
        arena.give_back(start, size)
    assert arena.take(1024) == 0


def test_a_refusal_has_the_numbers():
    arena = small_arena()
    arena.take(900)
    with pytest.raises(NoSpaceError, match="256 tokens: 64 of 1,024 are free"):
        arena.take(200)


def test_bytes_of_a_position_are_those_of_all_layers():
    assert small_arena().bytes_per_position == 2 * 3 * 2 * 8 * 4
