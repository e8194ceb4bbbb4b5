"""Text comes back from its tokens, and no text makes a special token."""

import json
import threading
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers

from engine.errors import ForegramError, ModelCorruptError, UnsupportedModelError
from engine.model.tokenizer import Tokenizer, TokenizerDocument
from tests.support.byte_tokenizer import CONTROL_TOKENS, byte_tokenizer

_DOCUMENT: dict[str, Any] = json.loads(byte_tokenizer().to_str())


def _made(content: dict[str, Any]) -> Tokenizer:
    return Tokenizer(TokenizerDocument.read(json.dumps(content)))


_TOKENIZER = _made(_DOCUMENT)
_PIECES = st.sampled_from([*CONTROL_TOKENS, "    ", "\n", "\r\n", "def", " self", "🙂", "e\u0301"])
_TEXTS = st.lists(_PIECES | st.text(max_size=5), max_size=12).map("".join)


@given(_TEXTS)
def test_decoding_what_was_encoded_gives_the_same_text(text: str) -> None:
    assert _TOKENIZER.decode(_TOKENIZER.encode(text)) == text


@given(_TEXTS)
def test_no_text_makes_a_special_token(text: str) -> None:
    assert not _TOKENIZER.vocabulary.special_ids & set(_TOKENIZER.encode(text))


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    text = "a\ud800b"
    assert _TOKENIZER.decode(_TOKENIZER.encode(text)) == "a\ufffdb"


def test_tokens_cut_inside_a_character_decode_to_replacement_characters() -> None:
    assert _TOKENIZER.vocabulary.bytes_of_all(_TOKENIZER.encode("é")[:1]) == b"\xc3"
    assert _TOKENIZER.decode(_TOKENIZER.encode("é")[:1]) == "\ufffd"


def test_text_keeps_its_unicode_form_although_the_tokenizer_would_normalise() -> None:
    tokenizer = _made(_DOCUMENT | {"normalizer": {"type": "NFC"}})
    assert tokenizer.decode(tokenizer.encode("e\u0301")) == "e\u0301"


def test_added_runs_of_blanks_stay_tokens_and_added_marks_do_not() -> None:
    added = _DOCUMENT["added_tokens"] + [
        _added(len(_TOKENIZER.vocabulary), "   \t"),
        _added(len(_TOKENIZER.vocabulary) + 1, "<tool_call>"),
    ]
    tokenizer = _made(_DOCUMENT | {"added_tokens": added})
    blank, mark = len(_TOKENIZER.vocabulary), len(_TOKENIZER.vocabulary) + 1
    ids = tokenizer.encode("x   \t<tool_call>")
    assert blank in ids
    assert mark not in ids
    assert mark in tokenizer.vocabulary.special_ids


def test_pieces_of_a_text_get_no_blank_in_front() -> None:
    backend = Backend(models.BPE({"▁": 0, "a": 1, "▁a": 2}, [("▁", "a")]))
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    assert backend.encode("a").ids == [2]
    assert _made(json.loads(backend.to_str())).encode("a") == [1]
    backend.normalizer = None
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    assert _made(json.loads(backend.to_str())).encode("a") == [1]
    assert _made(json.loads(backend.to_str())).encode(" a") == [2]


def test_what_a_template_puts_before_a_text_is_known() -> None:
    template = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "<|fim_pad|>", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {
            "<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]},
            "<|fim_pad|>": {"id": "<|fim_pad|>", "ids": [4], "tokens": ["<|fim_pad|>"]},
        },
    }
    assert _TOKENIZER.start_ids == ()
    document = _DOCUMENT | {"post_processor": {"type": "Sequence", "processors": [template]}}
    assert _made(document).start_ids == (0,)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '{"added_tokens": 3}', "null"])
def test_what_is_no_tokenizer_is_refused(text: str) -> None:
    with pytest.raises(ModelCorruptError, match=r"tokenizer\.json cannot be read"):
        TokenizerDocument.read(text)


def test_a_model_kind_that_is_unknown_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match=r"tokenizer\.json cannot be used"):
        _made(_DOCUMENT | {"model": {"type": "Telepathy"}})


def test_every_refusal_is_an_error_of_ours() -> None:
    for name in _DOCUMENT:
        broken = {key: value for key, value in _DOCUMENT.items() if key != name}
        try:
            _made(broken)
        except ForegramError:
            continue


def _added(token_id: int, content: str) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": token_id, "content": content} | flags


def test_other_threads_run_while_a_long_text_is_encoded() -> None:
    """Before, one megabyte of a client's text stopped the whole host for two seconds."""
    ticks, is_over = [time.perf_counter()], threading.Event()

    def tick() -> None:
        while not is_over.is_set():
            time.sleep(0.001)
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.perf_counter()
    ids = _TOKENIZER.encode("total = price + tax\n" * 40_000)
    took = time.perf_counter() - began
    is_over.set()
    thread.join()
    assert len(ids) == len(_TOKENIZER.encode("total = price + tax\n")) * 40_000
    assert max(later - earlier for earlier, later in pairwise(ticks)) < 0.7 * took


@given(st.lists(_TEXTS.map(lambda text: 20 * text), max_size=20), st.integers(1, 400))
def test_one_that_remembers_says_the_same(texts: list[str], most_chars: int) -> None:
    remembering = _TOKENIZER.remembering(most_chars)
    for text in texts + texts:
        assert remembering.encode(text) == _TOKENIZER.encode(text)


@pytest.mark.parametrize("token_id", [2**62, -1, "7", 1.5])
def test_impossible_ids_are_refused_before_a_list_is_made_of_them(token_id: Any) -> None:
    added = [*_DOCUMENT["added_tokens"], _added(token_id, "<odd>")]
    with pytest.raises(ForegramError):
        _made(_DOCUMENT | {"added_tokens": added})
