"""A model on the host chooses and walks when the outputs of its steps are wanted, and not before."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import Sampling
from engine.model.causal_lm import NUM_TOP, StepInput
from engine.model.eager import EagerFlight, Logits, top_tokens
from engine.model.sampling import choose
from engine.model.token_tree import TokenTree, verify

TREE = TokenTree(np.array([5, 1, 2, 3]), np.array([-1, 0, 0, 1], np.int32))
LOGITS = torch.randn(4, 20, generator=torch.Generator().manual_seed(1)).numpy()


def step_of(**options):
    return StepInput(SimpleNamespace(length=7), TREE, **options)


def finished(*steps):
    return EagerFlight(steps, lambda step: Logits(LOGITS[: step.tree.num_rows])).finish()


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.8, seed=2)], ids=["greedy", "drawn"])
def test_the_output_is_what_the_logits_say(sampling):
    (output,) = finished(step_of(sampling=sampling))
    expected = choose(LOGITS, 8 + TREE.depths, sampling)
    assert output.chosen.tolist() == expected.tolist()
    assert output.path.tolist() == verify(TREE.token_ids, TREE.parents, expected).tolist()
    assert output.top_tokens().shape == (4, NUM_TOP)
    assert output.ms > 0
    assert output.step_rows == 4


def test_the_rows_of_the_path_say_how_probable_their_choice_is():
    (output,) = finished(step_of())
    expected = torch.from_numpy(LOGITS).log_softmax(dim=1).amax(dim=1)[output.path]
    assert output.log_probs[output.path].tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_rows_with_a_constraint_keep_to_it():
    allowed = [np.array([3, 4]), None, None, np.array([0])]
    (output,) = finished(step_of(allowed=allowed))
    assert output.chosen[0] == (3 if LOGITS[0, 3] >= LOGITS[0, 4] else 4)
    assert output.chosen[3] == 0
    assert output.chosen[1:3].tolist() == LOGITS[1:3].argmax(axis=1).tolist()


def test_a_step_without_a_head_and_one_that_was_dropped_say_nothing():
    read, dropped, ran = step_of(has_head=False), step_of(), []

    def forward(step):
        ran.append(step)
        return Logits(LOGITS)

    flight = EagerFlight([read, dropped], forward)
    dropped.is_dropped = True
    assert flight.finish() == [None, None]
    assert ran == [read]


@given(
    rows=st.integers(1, 5), vocab=st.integers(8, 1000), width=st.integers(1, 8), seed=st.integers(0)
)
@settings(max_examples=60, deadline=None)
def test_they_are_those_of_a_stable_sort(rows, vocab, width, seed):
    generator = torch.Generator().manual_seed(seed % 2**31)
    logits = torch.randint(-50, 50, (rows, vocab), generator=generator).float().numpy()
    expected = np.argsort(-logits, axis=1, kind="stable")[:, :width]
    assert top_tokens(Logits(logits), width).tolist() == expected.tolist()


def test_a_whole_vocabulary_agrees_with_torch():
    logits = torch.randn(4, 151_936, generator=torch.Generator().manual_seed(1))
    expected = torch.topk(logits, 8, dim=-1).indices
    assert top_tokens(Logits(logits.numpy()), 8).tolist() == expected.tolist()
