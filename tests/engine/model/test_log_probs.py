"""How probable a choice is: the logarithm of its share, the same whatever rows stand beside it."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.log_probs import log_probs, log_sum_exp

LOGITS = 4 * torch.randn(5, 1_003, generator=torch.Generator().manual_seed(3))


def test_they_are_the_logarithms_of_the_softmax():
    rows, chosen = np.array([0, 3, 4]), np.array([17, 1_002, 0])
    expected = LOGITS.double().log_softmax(dim=1)[torch.from_numpy(rows), torch.from_numpy(chosen)]
    assert log_probs(LOGITS, rows, chosen).tolist() == pytest.approx(expected.tolist(), abs=2e-6)


def test_a_constraint_shares_out_the_probability_among_the_ids_that_it_leaves():
    allowed = [np.array([3, 9, 40]), None, None, None, None]
    (found,) = log_probs(LOGITS, np.array([0]), np.array([9]), allowed)
    expected = LOGITS[0, [3, 9, 40]].double().log_softmax(dim=0)[1]
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
