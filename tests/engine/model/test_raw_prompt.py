"""Prompts that their callers laid out: special tokens by name, nothing added, nothing left out."""

import pytest

from engine.errors import InputError
from engine.model.fim import find_fim_format
from engine.model.raw_prompt import raw_prompt
from engine.model.tokenizer import Tokenizer
from tests.support.byte_tokenizer import (
    CONTROL_TOKENS,
    MELLUM_TOKENS,
    byte_tokenizer,
    own_tokenizer,
)


def made(text, names=CONTROL_TOKENS, max_tokens=1000):
    tokenizer = own_tokenizer(names)
    fim = find_fim_format(tokenizer.vocabulary, "a model")
    return tokenizer, fim, raw_prompt(tokenizer, fim, text, max_tokens)


def test_names_of_special_tokens_are_these_tokens_and_the_rest_is_text():
    text = "<|fim_prefix|>def f():\n<|fim_suffix|>\n<|fim_middle|>"
    tokenizer, fim, raw = made(text)
    before, behind = tokenizer.encode("def f():\n"), tokenizer.encode("\n")
    ids = (fim.prefix_id, *before, fim.suffix_id, *behind, fim.middle_id)
    assert raw.prompt.ids == ids
    assert (raw.prompt.dropped, raw.prompt.partial) == (b"", b"")


def test_the_tokens_are_those_of_a_tokenizer_that_knows_special_tokens():
    text = "<|repo_name|>shop\n<|file_sep|>a.py\nreturn <|fim_prefix|><|fim_pre <|endoftext|>"
    _, _, raw = made(text)
    assert list(raw.prompt.ids) == byte_tokenizer().encode(text).ids


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (CONTROL_TOKENS, "<|file_sep|>a.py\n<|fim_prefix|>be<|fim_suffix|>hind<|fim_middle|>fore"),
        (MELLUM_TOKENS, "<filename>a.py\n<fim_suffix>hind<fim_prefix>before<fim_middle>"),
    ],
)
def test_drafts_continue_the_text_before_the_cursor(names, text):
    tokenizer, _, raw = made(text, names)
    assert (raw.prefix, raw.suffix) == ("before", "hind")
    assert tokenizer.decode(raw.prompt.context_ids) == "before"


def test_names_that_begin_with_a_blank_are_written_with_it_or_without():
    """As CodeLlama's are, whose prefix has a blank of its own."""
    names = ("<EOT>", "▁<PRE>", "▁<MID>", "▁<SUF>")
    tokenizer, fim, raw = made("<PRE> before <SUF>hind <MID>", names)
    before, behind = tokenizer.encode(" before"), tokenizer.encode("hind")
    ids = (fim.prefix_id, *before, fim.suffix_id, *behind, fim.middle_id)
    assert raw.prompt.ids == ids


def test_where_there_is_no_hole_all_text_stands_before_the_cursor():
    _, _, raw = made("def f():\n")
    assert (raw.prefix, raw.suffix) == ("def f():\n", "")


def test_what_is_far_too_long_is_refused_before_all_of_it_is_encoded(monkeypatch):
    lengths = []
    encode = Tokenizer.encode

    def noted(self, text):
        lengths.append(len(text))
        return encode(self, text)

    monkeypatch.setattr(Tokenizer, "encode", noted)
    with pytest.raises(InputError, match="tokens, and with an answer at most 39"):
        made("<|fim_prefix|>x = 1\n" * 1_000_000, max_tokens=39)
    assert sum(lengths) < 20_000


def test_what_does_not_fit_is_refused_with_the_numbers():
    with pytest.raises(InputError, match="40 tokens, and with an answer at most 39"):
        made("0" * 40, max_tokens=39)
    with pytest.raises(InputError, match="empty"):
        made("")
