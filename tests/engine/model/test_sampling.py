"""Choosing tokens: ties, constraints, the law of the draws, and rows that ignore each other."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import Sampling
from engine.model.sampling import choose, log_probs, log_sum_exp, noise_keys

SMALL = np.array([[2.0, 0.5, 1.5, -1.0, 1.0, 0.0]], np.float32)
MANY = 10_000


LOGITS = 4 * torch.randn(5, 1_003, generator=torch.Generator().manual_seed(3)).numpy()


def draws(logits: np.ndarray, sampling: Sampling, allowed: list[int] | None = None) -> np.ndarray:
    """How often each id is drawn at MANY positions."""
    ids = None if allowed is None else [np.array(allowed)] * MANY
    drawn = choose(logits.repeat(MANY, axis=0), np.arange(MANY), sampling, ids)
    return np.bincount(drawn, minlength=logits.shape[1])


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    expected = probabilities * counts.sum()
    seen = probabilities > 0
    assert counts[~seen].sum() == 0
    return float(((counts - expected)[seen] ** 2 / expected[seen]).sum())


def law(logits: np.ndarray, temperature: float, kept: list[int]) -> np.ndarray:
    masked = np.full_like(logits[0], -math.inf)
    masked[kept] = logits[0, kept]
    return torch.from_numpy(masked).double().div(temperature).softmax(dim=0).numpy()


def test_greedy_takes_the_largest_and_the_lowest_id_of_equals():
    logits = np.zeros((3, 152_000), np.float32)
    logits[0, [7, 70_000]] = 5.0
    logits[1, 151_999] = 1.0
    assert choose(logits, [0, 1, 2], Sampling()).tolist() == [7, 151_999, 0]


def test_greedy_keeps_to_the_allowed_ids_of_each_row():
    logits = np.array([[9.0, 1.0, 1.0, 0.0]] * 2, np.float32)
    assert choose(logits, [0, 1], Sampling(), [np.array([1, 2, 3]), None]).tolist() == [1, 0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_draws_follow_the_softmax_of_the_temperature(temperature):
    counts = draws(SMALL, Sampling(temperature, seed=1))
    # 20.5 is the 99.9 % quantile for 5 degrees of freedom; the noise is fixed, so is the outcome
    assert chi_square(counts, law(SMALL, temperature, list(range(6)))) < 20.5


def test_a_constraint_leaves_its_ids_and_their_proportions():
    counts = draws(SMALL, Sampling(1.0), allowed=[1, 3, 5])
    assert chi_square(counts, law(SMALL, 1.0, [1, 3, 5])) < 13.8


def test_a_constraint_that_leaves_one_id_decides():
    assert draws(SMALL, Sampling(1.0), allowed=[3])[3] == MANY


def test_what_cannot_come_is_never_drawn():
    logits = SMALL.copy()
    logits[0, [0, 4]] = -math.inf
    counts = draws(logits, Sampling(5.0))
    assert counts[[0, 4]].sum() == 0


def test_seeds_and_positions_give_independent_noise():
    flat = np.zeros((1000, 1000), np.float32)
    one = choose(flat, np.arange(1000), Sampling(1.0, seed=1))
    two = choose(flat, np.arange(1000), Sampling(1.0, seed=2))
    later = choose(flat, np.arange(1000) + 1, Sampling(1.0, seed=1))
    assert later.tolist()[:-1] == one.tolist()[1:]
    assert (one == two).mean() < 0.01
    assert len(set(one.tolist())) > 550  # 632 of 1000 when drawn independently


@given(
    seed=st.integers(0, 2**62),
    vocab=st.integers(2, 400),
    temperature=st.floats(0.05, 5.0),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_a_row_draws_the_same_alone_and_among_others(seed, vocab, temperature, data):
    generator = torch.Generator().manual_seed(seed % 2**31)
    logits = 4 * torch.randn(7, vocab, generator=generator).numpy()
    positions = data.draw(st.lists(st.integers(0, 10**6), min_size=7, max_size=7))
    sampling = Sampling(temperature, seed)
    together = choose(logits, positions, sampling)
    for row, position in enumerate(positions):
        assert choose(logits[row : row + 1], [position], sampling)[0] == together[row]


@given(seed=st.integers(0, 2**63 - 1), position=st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_the_quick_test_never_changes_the_winner(seed, position):
    """Skipping ids that cannot win gives what noise on all ids gives."""
    logits = 3 * torch.randn(1, 300, generator=torch.Generator().manual_seed(position)).numpy()
    everywhere = [
        float(logits[0, i]) / 0.7 + _noise_by_definition(seed, position, i) for i in range(300)
    ]
    drawn = choose(logits, [position], Sampling(0.7, seed=seed))
    assert drawn[0] == int(np.argmax(everywhere))


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def _head(key: int, token_id: int) -> int:
    x = (token_id * 0x9E3779B1 + key) % 2**32
    x = (x ^ (x >> 16)) * 0x7FEB352D % 2**32
    x = (x ^ (x >> 15) ^ (key >> 32)) * 0x846CA68B % 2**32
    return (x ^ (x >> 16)) >> 1


def _noise_by_definition(seed: int, position: int, token_id: int) -> float:
    key = _mix(_mix((seed + 0x9E3779B97F4A7C15) % 2**64) ^ position)
    rest = _mix(key ^ (token_id << 32)) >> 43
    tail = (_head(key, token_id) * 2**21 + rest + 0.5) / 2**52
    return -math.log(-math.log1p(-tail))


def test_a_place_has_one_key_of_noise_wherever_it_stands():
    keys = noise_keys(3, np.arange(100))
    assert keys.shape == (100, 2)
    assert keys.dtype == np.int32
    assert (noise_keys(3, np.array([42]))[0] == keys[42]).all()


def test_seeds_and_places_have_keys_of_their_own():
    keys = np.concatenate([noise_keys(seed, np.arange(1000)) for seed in (0, 1, -1, 2**63)])
    assert len(np.unique(keys, axis=0)) == 4000


def test_keys_are_even_bits():
    bits = np.unpackbits(noise_keys(7, np.arange(4000)).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 0.005


def test_they_are_the_logarithms_of_the_softmax():
    rows, chosen = np.array([0, 3, 4]), np.array([17, 1_002, 0])
    expected = torch.from_numpy(LOGITS).double().log_softmax(dim=1).numpy()[rows, chosen]
    assert log_probs(LOGITS, rows, chosen).tolist() == pytest.approx(expected.tolist(), abs=2e-6)


def test_a_constraint_shares_out_the_probability_among_the_ids_that_it_leaves():
    allowed = [np.array([3, 9, 40]), None, None, None, None]
    (found,) = log_probs(LOGITS, np.array([0]), np.array([9]), allowed)
    expected = torch.from_numpy(LOGITS[0, [3, 9, 40]]).double().log_softmax(dim=0)[1]
    assert found == pytest.approx(expected.item(), abs=2e-6)


def test_a_row_has_the_bits_that_it_has_alone():
    together = log_probs(LOGITS, np.arange(5), np.arange(5))
    alone = [
        log_probs(LOGITS[row : row + 1], np.zeros(1, np.int64), np.array([row])) for row in range(5)
    ]
    assert np.concatenate(alone).tobytes() == together.tobytes()


@given(size=st.integers(1, 300), seed=st.integers(0, 999), scale=st.sampled_from([0.1, 5.0, 60.0]))
@settings(max_examples=40, deadline=None)
def test_the_sum_is_that_of_twice_the_precision(size, seed, scale):
    values = (scale * np.random.default_rng(seed).standard_normal(size)).astype(np.float32)
    expected = torch.from_numpy(values).double().logsumexp(dim=0).item()
    assert log_sum_exp(values) == pytest.approx(expected, abs=1e-5)
