"""Edits of text reach the pool as the tokens that a tokenizer finds in the whole text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from engine.drafting.pool import NgramPool
from engine.drafting.tree import Source
from engine.drafting.workspace import Workspace, split_blocks

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
    """The range of characters that two shares of a text mean, and the text after the edit."""
    start, end = sorted(round(one * len(text)) for one in (share, other))
    return start, end, text[:start] + new + text[end:]


@settings(deadline=None, max_examples=300)
@given(texts, edits)
def test_tokens_after_any_edits_are_those_of_the_whole_text(splitting, text, changes):
    encode = encoder(splitting)
    pool = NgramPool(100_000, 400)
    workspace = Workspace(pool, encode)
    document = workspace.open("a.py", text)
    for share, other, new in changes:
        start, end, text = edited(text, share, other, new)
        workspace.change("a.py", start, end, new)
        assert workspace.text("a.py") == text
        assert pool.tokens_of(document).tolist() == encode(text)
        assert workspace.token_ids("a.py").tolist() == encode(text)


@settings(deadline=None, max_examples=50)
@given(texts, edits)
def test_a_tokenizer_that_joins_lines_is_asked_for_the_whole_text(joining, text, changes):
    encode = encoder(joining)
    workspace = Workspace(NgramPool(100_000, 400), encode)
    text = "x\nx\n   return x\n" + text  # joins what lines part
    workspace.open("a.py", text)
    for share, other, new in changes:
        start, end, text = edited(text, share, other, new)
        workspace.change("a.py", start, end, new)
        assert workspace.token_ids("a.py").tolist() == encode(text)


@given(st.text("ab \n\r\t\f"))
def test_blocks_are_the_text_cut_before_lines_that_are_not_blank(text):
    blocks = split_blocks(text)
    assert "".join(blocks) == text
    assert all(
        block.startswith("\n") is False or number == 0 for number, block in enumerate(blocks)
    )
    assert all(block.endswith("\n") for block in blocks[:-1])


def test_a_keystroke_changes_few_tokens(splitting):
    lengths = []

    class Recording(NgramPool):
        def edit(self, document, start, end, ids):
            lengths.append((end - start, len(ids)))
            super().edit(document, start, end, ids)

    workspace = Workspace(Recording(100_000, 400), encoder(splitting))
    workspace.open("a.py", "def f(x):\n    return x\n\n" * 200)
    workspace.change("a.py", 20, 21, "xx")
    ((removed, added),) = lengths
    assert removed <= 3
    assert added <= 3


def test_typed_text_is_drafted_with_its_new_surroundings(splitting):
    encode = encoder(splitting)
    pool = NgramPool(100_000, 400)
    workspace = Workspace(pool, encode)
    workspace.open("a.py", "one\ntwo\nthree\n")
    workspace.change("a.py", 4, 7, "four")
    draft = pool.draft(encode("one\n"), 64)
    text, node = [], -1
    for token, parent in zip(draft.tokens.tolist(), draft.parents.tolist(), strict=True):
        if parent == node:
            text.append(token)
            node += 1
    assert (
        splitting.decode(text)
        .replace("Ġ", " ")
        .replace("Ċ", "\n")
        .replace(" ", "")
        .startswith("four")
    )


def test_opening_a_path_again_replaces_its_text(splitting):
    pool = NgramPool(100_000, 400)
    workspace = Workspace(pool, encoder(splitting))
    workspace.open("a.py", "one")
    document = workspace.open("a.py", "two", Source.EDITED_FILE)
    assert workspace.text("a.py") == "two"
    np.testing.assert_array_equal(pool.tokens_of(document), workspace.token_ids("a.py"))


def test_what_is_not_open_cannot_be_changed_or_closed(splitting):
    workspace = Workspace(NgramPool(1000, 400), encoder(splitting))
    with pytest.raises(ValueError, match=r"b\.py is not open"):
        workspace.change("b.py", 0, 0, "x")
    workspace.open("b.py", "text")
    with pytest.raises(ValueError, match="3 to 5 is no range of 4 characters"):
        workspace.change("b.py", 3, 5, "x")
    workspace.close("b.py")
    with pytest.raises(ValueError, match=r"b\.py is not open"):
        workspace.close("b.py")


def test_a_workspace_compacts_a_pool_full_of_old_edits(splitting):
    pool = NgramPool(1_000_000, 400, budgets={})
    workspace = Workspace(pool, encoder(splitting))
    workspace.open("a.py", "def f(x):\n    return x\n")
    for number in range(600):
        workspace.change("a.py", 21, 22, str(number % 7))
    before = len(pool)
    workspace.tidy()
    assert len(pool) < before / 10
    assert workspace.text("a.py").endswith("return 4\n")


@settings(deadline=None, max_examples=100)
@given(text=texts, other=texts)
def test_a_replaced_text_is_the_other_one_and_so_are_its_tokens(splitting, text, other):
    encode = encoder(splitting)
    workspace = Workspace(NgramPool(10_000, 400), encode)
    workspace.open("a.py", text)
    workspace.replace("a.py", other)
    assert workspace.text("a.py") == other
    assert workspace.token_ids("a.py").tolist() == encode(other)
