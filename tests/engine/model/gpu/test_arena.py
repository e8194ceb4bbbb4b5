"""Slots come and go; their memory is whole again when all are gone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import NoSpaceError
from engine.model.gpu.arena import KVArena, rounded
from engine.model.model_config import ModelConfig

SMALL = ModelConfig(
    num_layers=3,
    hidden_size=32,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    intermediate_size=64,
    vocab_size=100,
    rope_theta=1e6,
    rms_norm_eps=1e-6,
    tie_word_embeddings=True,
    max_position=1024,
)


def small_arena(positions=1024):
    return KVArena(SMALL, positions, torch.float32, torch.device("cpu"))


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
