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


@pytest.mark.parametrize(
    ("before", "partial", "owed", "begin"),
    [
        ("def g(self):\n", "        ", False, "return self.value"),
        ("def g(self):\n        ", "ret", False, "urn self.value"),
        ("def g(self):\n        ", "ret", True, "return self.value"),  # it is healed
        ("def g(self):\n        ", "raise", True, ""),
        ("        return se", "lf.va", False, "lue"),  # half of the token ` self` elsewhere
        ("", "x", True, ""),
    ],
)
def test_what_follows_the_same_text_elsewhere_is_drafted(tokenizer, before, partial, owed, begin):
    text = first_draft(tokenizer, before, partial, owed=owed)
    assert text.startswith(begin)
    assert bool(text) == bool(begin)


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
