"""An edited text has the tokens that a tokenizer finds in the whole of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from engine.drafting.tokenised_text import TokenisedText

# As Qwen's, without the contractions.
SPLIT = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LINES = ["def f(x):\n", "    return x\n", "\n", "   \n", "x = [1,\n", "  2]\r\n", "\t\n", "é🙂\n"]
texts = st.lists(st.sampled_from([*LINES, "x", " ", "\n", "):", "\r", "\f", "12"]), max_size=9).map(
    "".join
)
edits = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), texts), max_size=5)


def trained(pre_tokenizer):
    """A byte-pair tokenizer that has merged a few lines of code."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(
        ["".join(LINES) * 3, "    \n\n    return x\n):\n\n\n  x"] * 3, trainer
    )
    return tokenizer


@pytest.fixture(scope="module")
def splitting():
    """Splits text before it merges, as the models' tokenizers do."""
    split = pre_tokenizers.Split(Regex(SPLIT), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return trained(pre_tokenizers.Sequence([split, level]))


@pytest.fixture(scope="module")
def joining():
    """Merges across line ends and words alike."""
    return trained(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))


def encoder(tokenizer):
    return lambda text: tokenizer.encode(text).ids


def edited(text, share, other, new):
    """A text with what is between two shares of it replaced."""
    start, end = sorted(round(one * len(text)) for one in (share, other))
    return text[:start] + new + text[end:]


@settings(deadline=None, max_examples=300)
@given(texts, edits)
def test_tokens_after_any_edits_are_those_of_the_whole_text(splitting, text, changes):
    encode = encoder(splitting)
    tokenised = TokenisedText(text, encode)
    for change in changes:
        text = edited(text, *change)
        tokenised.become(text)
        assert tokenised.text == text
        assert tokenised.token_ids.tolist() == encode(text)


@settings(deadline=None, max_examples=50)
@given(texts, edits)
def test_a_tokenizer_that_joins_lines_is_asked_for_the_whole_text(joining, text, changes):
    encode = encoder(joining)
    text = "x\nx\n   return x\n" + text  # joins what lines part
    tokenised = TokenisedText(text, encode)
    for change in changes:
        text = edited(text, *change)
        tokenised.become(text)
        assert tokenised.token_ids.tolist() == encode(text)


def test_a_keystroke_tokenises_few_lines(splitting):
    asked = []

    def encode(text):
        asked.append(len(text))
        return splitting.encode(text).ids

    text = "def f(x):\n    return x\n\n" * 200
    tokenised = TokenisedText(text, encode)
    asked.clear()
    tokenised.become(text[:2020] + "x" + text[2020:])
    assert sum(asked) < 100


@settings(deadline=None, max_examples=100)
@given(text=texts, other=texts)
def test_a_text_may_become_any_other(splitting, text, other):
    encode = encoder(splitting)
    tokenised = TokenisedText(text, encode)
    tokenised.become(other)
    assert tokenised.token_ids.tolist() == encode(other)
