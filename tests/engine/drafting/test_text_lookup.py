"""The first step's lookup, with the byte tokenizer, whose words are tokens that merge at borders."""

from copy import copy

import pytest

from engine.drafting.pool import NgramPool
from engine.drafting.text_lookup import TextLookup
from engine.drafting.tree import Source
from tests.support.byte_tokenizer import own_tokenizer

ELSEWHERE = "def f(self):\n        return self.value + 1\n"


@pytest.fixture(scope="module")
def tokenizer():
    return own_tokenizer()


def first_draft(tokenizer, before, partial, *, owed, elsewhere=ELSEWHERE, nodes=20, in_blocks=True):
    """The likeliest drafted path as text."""
    pool = NgramPool(10_000, len(tokenizer.vocabulary))
    pool.add(tokenizer.encode(elsewhere), Source.OPEN_BUFFER)
    context = tokenizer.encode(before)
    pool.add(context, Source.EDITED_FILE)
    tokenizer = copy(tokenizer)
    tokenizer.encodes_blocks = in_blocks
    lookup = TextLookup(pool, tokenizer)
    draft = lookup.draft(context, partial.encode(), nodes, owed=owed)
    path, here = [], -1
    for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
        if parent == here:
            path.append(int(token))
            here = node
    return tokenizer.decode(path)


def test_indentation_before_the_cursor_finds_the_line_behind_it(tokenizer):
    text = first_draft(tokenizer, "def g(self):\n", "        ", owed=False)
    assert text.startswith("return self.value")


def test_half_a_word_is_completed(tokenizer):
    text = first_draft(tokenizer, "def g(self):\n        ", "ret", owed=False)
    assert text.startswith("urn self.value")


def test_a_healed_answer_begins_with_what_it_owes(tokenizer):
    text = first_draft(tokenizer, "def g(self):\n        ", "ret", owed=True)
    assert text.startswith("return self.value")


def test_text_that_never_followed_drafts_nothing(tokenizer):
    assert first_draft(tokenizer, "def g(self):\n        ", "raise", owed=True) == ""


def test_tokens_before_the_piece_may_end_elsewhere_too(tokenizer):
    """The context ends in ` se`, half of the token ` self` of the other text."""
    text = first_draft(tokenizer, "        return se", "lf.va", owed=False)
    assert text.startswith("lue")


def test_an_empty_context_drafts_nothing(tokenizer):
    assert first_draft(tokenizer, "", "x", owed=True) == ""


@pytest.mark.parametrize(
    "elsewhere",
    [
        "def f(self):\n        return self.value + 1\n\n\ndef g(self):\n    pass\n",
        "def f(self):\n        return [\n            1,\n    \n            2,\n        ]\n",
        "def f(self):\n        return\n\n\n",
        "def f(self):\n        return self.value + 1",
        "def f(self):\n        return 'über'\n        x = 1\n",
    ],
)
def test_the_lines_behind_the_first_one_are_not_tokenised_again(tokenizer, elsewhere):
    """Their tokens are what they were: the draft is the one of all text tokenised again."""
    given = {"owed": False, "elsewhere": elsewhere, "nodes": 50}
    whole = first_draft(tokenizer, "def g(self):\n        ", "ret", in_blocks=False, **given)
    quick = first_draft(tokenizer, "def g(self):\n        ", "ret", **given)
    assert whole
    assert quick.startswith(whole)
    assert elsewhere.split("ret", 1)[1].startswith(quick)
