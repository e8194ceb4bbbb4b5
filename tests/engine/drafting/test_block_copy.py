"""The block of an edit is copied on, and found again behind each change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.drafting.block_copy import BlockCopy
from engine.drafting.tree import DraftTree, Source
from engine.model.tokenizer import Tokenizer
from tests.support.byte_tokenizer import own_tokenizer

TOKENIZER = own_tokenizer()
BLOCK = """def push(self, item):
    if item is None:
        return
    self.items.append(item)
    self.size = len(self.items)
    return item
"""


def copying(answer: str, block: str = BLOCK) -> BlockCopy:
    """A copy of the block behind what the answer has written."""
    copy = BlockCopy(block, TOKENIZER)
    for token in TOKENIZER.encode(answer):
        copy.update([token])
    return copy


def drafted(copy: BlockCopy) -> list[str]:
    """The texts that are drafted, likeliest first."""
    drafts = sorted(copy.drafts(40), key=lambda draft: -draft.probs[:1].sum())
    return [TOKENIZER.decode(draft.tokens.tolist()) for draft in drafts]


def goes_on(answer: str, text: str, block: str = BLOCK) -> bool:
    return any(one.startswith(text) for one in drafted(copying(answer, block)))


def test_an_answer_begins_as_its_block():
    [text] = drafted(copying(""))
    assert BLOCK.startswith(text)
    assert len(text) > 20


def test_an_answer_that_ends_the_block_drafts_no_more():
    assert drafted(copying(BLOCK)) in ([], [""])


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("def push(self, item, count):\n    if", " item is None"),  # inserted words
        ("def push(self, value):\n    if value is", " None:\n        return"),  # a replaced one
        ("def push(self, item):\n    self.items", ".append(item)\n"),  # deleted lines
        ("def push(self, item):\n    # Ours.\n", "    if item is None"),  # an inserted line
        ("def push(self, item):\n    if not item:\n", "        return\n"),  # a replaced one
    ],
)
def test_a_changed_answer_rejoins_its_block(answer, text):
    assert goes_on(answer, text)


def test_a_word_is_replaced_in_the_rest_as_it_was_above():
    assert goes_on(
        "def push(self, value):\n    if value is N",
        "one:\n        return\n    self.items.append(value)",
    )


def test_only_a_part_of_a_long_block_is_encoded_anew(monkeypatch):
    block, encoded, encode = BLOCK * 100, list[str](), Tokenizer.encode

    def recorded(self, text):
        encoded.append(text)
        return encode(self, text)

    answer = "def push(self, value):\n    if"
    monkeypatch.setattr(Tokenizer, "encode", recorded)
    copying(answer, block)
    [*_, near] = encoded
    assert near.startswith(" value is None:\n        return\n    self.items.append(value)")
    assert len(near) < 1200
    behind = block.removeprefix((answer + near).replace("value", "item"))
    assert len(behind) < len(block)
    assert goes_on(answer + near, behind[:40], block)


def test_an_inserted_line_with_the_same_names_replaces_no_word():
    block = "def push(box):\n    kind = box.kind\n    return kind, kind\n"
    assert goes_on("def push(box):\n    if box.kind", "\n    return kind, kind\n", block)


def test_lines_stay_as_deep_as_they_are_below_another_line_with_the_same_words():
    block = (
        "def push(box):\n    import stock\n\n    if isinstance(box, stock.Box):\n"
        "        box = box.kind\n    return box\n"
    )
    below = "    import stock\n\n    if isinstance(box, "
    assert goes_on("def push(box: stock.Box) -> None:\n", below, block)


def test_lines_are_indented_as_the_line_above():
    answer = (
        BLOCK[: BLOCK.index("    self.items")] + "    with self.lock:\n        self.items.append"
    )
    assert goes_on(answer, "(item)\n        self.size = len(self.items)\n")


def test_a_wrong_return_to_the_block_is_mended():
    """A sign stands in many places: the first one that fits may not be the one."""
    answer = "def push(self, item):\n    if item is None:\n        return item\n    return item\n"
    again = answer + BLOCK[:22]
    assert goes_on(again, "    if item is None", block=answer + BLOCK)


@given(
    block=st.text(st.sampled_from("ab \n\té.")),
    answer=st.text(st.sampled_from("ab \n\té.")),
    nodes=st.integers(1, 127),
)
def test_whatever_is_written_the_drafts_are_chains_of_at_most_so_many_tokens(block, answer, nodes):
    copy = copying("", block)
    for token in TOKENIZER.encode(answer):
        copy.update([token])
        tree = DraftTree(500)
        for draft in copy.drafts(nodes):
            assert len(draft.tokens) <= nodes
            assert np.all(draft.parents == np.arange(-1, len(draft.tokens) - 1))
            assert np.all(np.diff(draft.probs) <= 0)
            assert set(draft.sources.tolist()) <= {Source.COPY}
            tree.add(draft)
        assert len(tree.best(nodes).tokens) <= nodes
