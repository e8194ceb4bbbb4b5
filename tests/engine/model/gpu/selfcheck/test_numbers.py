"""Rounding is no fault, and what is more than rounding is one."""

import pytest
import torch

from engine.model.gpu.selfcheck.check import compare_numbers
from engine.model.gpu.selfcheck.rows import CHOSEN, LOG_PROBS, LOGITS, DifferenceError

ROWS, VOCAB = 16, 2000


def answer(logits, noise=0.0):
    chosen = (logits + noise).argmax(dim=1)
    log_probs = logits.log_softmax(dim=1).gather(1, chosen[:, None])[:, 0]
    return {LOGITS: logits, CHOSEN: chosen, LOG_PROBS: log_probs}


@pytest.fixture
def logits():
    return 3 * torch.randn(ROWS, VOCAB)


@pytest.mark.parametrize("is_drawn", [False, True])
def test_of_two_tokens_that_are_nearly_equal_either_may_be_chosen(logits, is_drawn):
    """A draw may choose another one by rounding, whose logit is no other's near it."""
    noise = -torch.log(-torch.log(torch.rand(ROWS, VOCAB))) * is_drawn
    rows = torch.arange(0, ROWS, 3)
    best, first = (logits + noise)[rows].max(dim=1)
    other = (first + 1) % VOCAB
    found, expected = logits.clone(), logits.clone()
    found[rows, other] = best - noise[rows, other] + 1e-3
    expected[rows, other] = best - noise[rows, other] - 1e-3
    one, two = answer(found, noise), answer(expected, noise)
    assert (one[CHOSEN] != two[CHOSEN]).sum() == len(rows)
    compare_numbers(one, two)


def test_errors_of_rounding_are_none(logits):
    compare_numbers(answer(logits), answer(logits.bfloat16().float()))


FAULTS = {
    "all logits": (lambda found: found[LOGITS].mul_(1.2), "logits differ from PyTorch's"),
    "last tokens": (
        lambda found: found[LOGITS][:, -2:].sub_(4.0),
        "a logit differs from PyTorch's",
    ),
    "NaN": (lambda found: found[LOGITS][3, 5].fill_(torch.nan), "by inf"),
    "sums": (lambda found: found[LOG_PROBS].sub_(0.1), "log-probabilities are not the logits'"),
    "choices": (lambda found: found[CHOSEN].random_(VOCAB), "log-probabilities are not"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_more_than_rounding_is_found(logits, fault):
    plant, phrase = FAULTS[fault]
    found = answer(logits.clone())
    plant(found)
    with pytest.raises(DifferenceError, match=phrase):
        compare_numbers(found, answer(logits))


def test_choices_that_have_their_probabilities_and_are_others_are_found(logits):
    found = answer(logits, 30 * torch.randn(ROWS, VOCAB))
    with pytest.raises(DifferenceError, match="other tokens are chosen than PyTorch's"):
        compare_numbers(found, answer(logits))
