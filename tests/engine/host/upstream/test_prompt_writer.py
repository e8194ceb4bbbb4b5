"""Pieces that stand for tokens: every text comes back, and none has many more tokens than pieces."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.host.upstream.prompt_writer import FIRST_TEXT_ID, EstimatedTokens
from engine.model.loading.stored_tokenizer import cached_tokenizer

ROOT = Path(__file__).parents[4]
CODEC = EstimatedTokens({"<|fim_prefix|>": 2, "<|fim_middle|>": 3})


@given(st.text())
def test_every_text_comes_back(text):
    ids = CODEC.encode(text)
    assert CODEC.decode(ids) == text
    assert all(one >= FIRST_TEXT_ID or one == 1 for one in ids)


def test_special_tokens_are_numbers_that_no_text_has():
    assert CODEC.decode([2, *CODEC.encode("a<|fim_prefix|>"), 3]) == (
        "<|fim_prefix|>a<|fim_prefix|><|fim_middle|>"
    )
    assert not {2, 3} & set(CODEC.encode("<|fim_prefix|>"))


def test_a_surrogate_without_its_half_is_replaced():
    assert CODEC.decode(CODEC.encode("a\ud800")) == "a\ufffd"


@pytest.mark.model
def test_code_has_fewer_tokens_than_pieces_but_not_by_far(cache_folder):
    tokenizer = cached_tokenizer("offline", cache_folder)
    if tokenizer is None:
        pytest.skip("the offline model was not converted here")
    for path in sorted((ROOT / "engine").rglob("*.py"))[::9]:
        text = path.read_text("utf-8")
        if len(text) > 1000:
            assert 1.0 < len(CODEC.encode(text)) / len(tokenizer.encode(text)) < 1.5, path
