"""The largest logits of each row."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.top_tokens import Logits, top_tokens


@given(
    rows=st.integers(1, 5), vocab=st.integers(8, 1000), width=st.integers(1, 8), seed=st.integers(0)
)
@settings(max_examples=60, deadline=None)
def test_they_are_those_of_a_stable_sort(rows, vocab, width, seed):
    generator = torch.Generator().manual_seed(seed % 2**31)
    logits = torch.randint(-50, 50, (rows, vocab), generator=generator).float()
    expected = np.argsort(-logits.numpy(), axis=1, kind="stable")[:, :width]
    assert top_tokens(Logits(logits), width).tolist() == expected.tolist()


def test_a_whole_vocabulary_agrees_with_torch():
    logits = torch.randn(4, 151_936, generator=torch.Generator().manual_seed(1))
    expected = torch.topk(logits, 8, dim=-1).indices
    assert top_tokens(Logits(logits), 8).tolist() == expected.tolist()
