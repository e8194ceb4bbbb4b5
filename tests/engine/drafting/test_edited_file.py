"""The pool holds the file that is typed in, for one completion after the other."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.drafting.edited_file import EditedFile, TokenisedText
from engine.drafting.pool import NgramPool, PoolFullError
from engine.drafting.tree import Source
from engine.request import CompletionRequest
from tests.support.trained_tokenizers import SPLITTERS, edited, edits, texts, trained

short_texts = st.text("ab \n", max_size=12)


class Encoder:
    """Characters are the tokens; counts those that were asked for."""

    def __init__(self):
        self.num_chars = 0

    def __call__(self, text):
        self.num_chars += len(text)
        return [ord(char) for char in text]


def make(capacity=10_000):
    pool, encode = NgramPool(capacity, 128), Encoder()
    return pool, encode, EditedFile(pool, encode)


def request(prefix, suffix="", path="a.py"):
    return CompletionRequest(prefix, suffix, path=path)


def found(pool, context):
    """What follows a context, as text, and where it stands."""
    places = pool.continuations([ord(char) for char in context], 20)
    return Counter(
        (one.worth, "".join(map(chr, one.tokens.tolist())), one.source) for one in places
    )


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(short_texts, short_texts, st.sampled_from(["a.py", "b.py"])),
        min_size=1,
        max_size=6,
    )
)
def test_both_sides_of_the_cursor_are_drafted_from_as_if_they_had_just_been_added(states):
    pool, _, file = make()
    for prefix, suffix, path in states:
        fresh = NgramPool(1000, 128)
        for text, source in ((suffix, Source.SUFFIX), (prefix, Source.EDITED_FILE)):
            fresh.add([ord(char) for char in text], source)
        with file.completed(request(prefix, suffix, path), ""):
            for context in ("a", "b", " a", "\n", prefix[-4:]):
                assert found(pool, context) == found(fresh, context)


def test_what_may_still_change_before_the_cursor_is_left_out():
    pool, _, file = make()
    with file.completed(request("one\n    ret"), " ret"):
        assert found(pool, "e\n") == {(2, "   ", Source.EDITED_FILE): 1}


def test_generated_tokens_follow_the_file_until_the_completion_ends():
    pool, _, file = make()
    with file.completed(request("x = a", "\n"), ""):
        pool.extend([ord("b"), ord("c")])
        assert found(pool, "ab") == {(2, "c", Source.GENERATED): 1}
    with file.completed(request("x = a", "\n"), ""):
        assert not found(pool, "a")


def test_of_several_files_only_the_last_one_is_held():
    pool, _, file = make()
    for path in ("a.py", "b.py"):
        with file.completed(request("", f"{path[0]} here\n", path), ""):
            pass
    assert not found(pool, "a")
    assert found(pool, "b") == {(1, " here\n", Source.SUFFIX): 1}


def test_a_closed_file_is_forgotten_and_another_is_not():
    pool, _, file = make()
    with file.completed(request("ab\n" * 2000, "cd"), ""):
        pass
    file.forget({"b.py"})
    assert found(pool, "a")
    assert found(pool, "c")
    file.forget({"a.py"})
    assert not found(pool, "a")
    assert not found(pool, "c")


def test_a_key_in_a_long_file_tokenises_a_few_lines():
    pool, encode, file = make(1 << 18)
    before, behind = "def one(value):\n" * 2000, "\n" + "    return value\n" * 2000
    with file.completed(request(before, behind), ""):
        pass
    length = len(pool)
    encode.num_chars = 0
    for typed in ("r", "re", "ret", "ret\n", "ret\ny"):
        with file.completed(request(before + typed, behind), ""):
            pass
    assert encode.num_chars < 200
    assert len(pool) - length < 100


def test_a_key_in_a_long_line_tokenises_its_end():
    _, encode, file = make(1 << 18)
    line = "x=1;" * 20_000
    with file.completed(request(line), ""):
        pass
    encode.num_chars = 0
    with file.completed(request(line + "y"), ""):
        pass
    assert encode.num_chars < 5000


def test_a_key_in_a_file_beyond_the_bounds_tokenises_a_few_lines():
    pool, encode, file = make(1 << 21)
    before = "def one(value):\n" * 70_000
    complete_often(file, before + "x\n")
    encode.num_chars = 0
    with file.completed(request(before + "x\ny\n"), ""):
        assert 900_000 <= len(pool) <= 1_010_000
    assert encode.num_chars < 200


def complete_often(file, prefix, suffix=""):
    for _ in range(20):
        with file.completed(request(prefix, suffix), ""):
            pass


def test_no_completion_tokenises_much_of_a_long_file_and_in_the_end_all_of_it_is_held():
    pool, encode, file = make(1 << 21)
    before, behind = "def one(value):\n" * 40_000, "    return value\n" * 20_000
    lengths = []
    for prefix, suffix in [(before, behind)] * 20 + [(behind, before)] * 20:
        encode.num_chars = 0
        with file.completed(request(prefix, suffix), ""):
            lengths.append(len(prefix) + len(suffix))
        assert encode.num_chars < 130_000
        if len(lengths) == 20:
            assert len(pool) > 0.95 * lengths[0]


def test_no_completion_tokenises_much_of_a_file_in_one_line():
    _, encode, file = make(1 << 21)
    line = "x=1;" * 200_000
    for number in range(20):
        encode.num_chars = 0
        with file.completed(request(line + "y" * number, line), ""):
            assert encode.num_chars < 130_000


def test_a_file_that_no_longer_fits_is_given_up_and_may_come_again():
    pool, _, file = make(200)
    with file.completed(request("ab\n"), ""):
        pass
    with pytest.raises(PoolFullError), file.completed(request("x" * 5000), ""):
        pass
    with file.completed(request("ab\n"), ""):
        assert found(pool, "a") == {(1, "b\n", Source.EDITED_FILE): 1}


@pytest.fixture(scope="module", params=["splitting", "merging"])
def encode(request):
    """Splits text before it merges, as the models' tokenizers do; or merges across lines and words."""
    tokenizer = trained(SPLITTERS[request.param])
    return lambda text: tokenizer.encode(text).ids


@settings(deadline=None, max_examples=100)
@given(texts, edits)
def test_tokens_after_any_edits_are_those_of_the_whole_text(encode, text, changes):
    text = "x\nx\n   return x\n" + text  # which the latter joins
    tokenised = TokenisedText(text, encode)
    for change in changes:
        text = edited(text, *change)
        tokenised.become(text)
        assert tokenised.text == text
        assert tokenised.token_ids.tolist() == encode(text)


@pytest.mark.parametrize("encode", ["splitting"], indirect=True)
@settings(deadline=None, max_examples=100)
@given(text=texts, other=texts)
def test_a_text_may_become_any_other(encode, text, other):
    tokenised = TokenisedText(text, encode)
    tokenised.become(other)
    assert tokenised.token_ids.tolist() == encode(other)
