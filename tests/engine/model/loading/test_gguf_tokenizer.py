"""A tokenizer from GGUF metadata is the one that the file was written from."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.loading.gguf_file import GgufFile
from engine.model.loading.gguf_tokenizer import tokenizer_document
from engine.model.tokenizer import Tokenizer
from tests.support.byte_tokenizer import CONTROL_TOKENS, byte_tokenizer
from tests.support.tiny_gguf import END_ID, write_tiny_gguf


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> GgufFile:
    return GgufFile(write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf"))


@pytest.fixture(scope="module")
def tokenizer(file: GgufFile) -> Tokenizer:
    return Tokenizer(tokenizer_document(file.metadata))


_ORIGINAL = byte_tokenizer()


@given(text=st.text(max_size=40))
def test_encodes_as_the_original_does(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.encode(text) == _ORIGINAL.encode(text).ids


def _bytes_of_whole_words() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


# The steps of the tokenizer.json that each rule stands for.
_STEPS = {
    "mellum": _bytes_of_whole_words(),
    "gpt-2": _bytes_of_whole_words(),
    "starcoder": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), _bytes_of_whole_words()]
    ),
    "seed-coder": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(
                Regex(
                    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}"
                    r"| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
                ),
                "isolated",
            ),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    ),
}
_CODE = st.lists(
    st.sampled_from(
        ["return", " ", "\n", "self", "):\n", "=", "12", "'ll", "é", "٣", "\t", "import"]
    ),
    max_size=20,
).map("".join)


@pytest.mark.parametrize("rule", _STEPS)
@given(text=_CODE)
def test_words_are_cut_as_the_model_cuts_them(file: GgufFile, rule: str, text: str) -> None:
    original = byte_tokenizer()
    original.pre_tokenizer = _STEPS[rule]
    metadata = file.metadata | {"tokenizer.ggml.pre": rule}
    tokenizer = Tokenizer(tokenizer_document(metadata))
    assert tokenizer.encode(text) == original.encode(text).ids


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x += 12345", ["x", " ", "+=", " ", "123", "45"]),  # as llama.cpp's own tokenizer cuts it
        ("a  b", ["a", " ", " b"]),
        ("it's(é)", ["it", "'", "s", "(", "é", ")"]),
    ],
)
def test_a_file_that_names_no_rule_is_cut_as_llama_cpp_does(file, text, words):
    metadata = {name: one for name, one in file.metadata.items() if not name.endswith(".pre")}
    content = json.loads(tokenizer_document(metadata).plain)
    steps = content["pre_tokenizer"]["pretokenizers"][:-1]  # the last one spells bytes
    cut = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(one["pattern"]["Regex"]), "isolated") for one in steps]
    )
    assert [word for word, _ in cut.pre_tokenize_str(text)] == words


@pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80"])
def test_a_token_that_is_no_utf8_is_refused(file: GgufFile, text: bytes) -> None:
    tokens = [*file.metadata["tokenizer.ggml.tokens"]]
    tokens[20] = str(text, "utf-8", "surrogateescape")
    with pytest.raises(ModelCorruptError, match="tokenizer is not whole"):
        tokenizer_document(file.metadata | {"tokenizer.ggml.tokens": tokens})


@pytest.mark.parametrize(("adds", "starts"), [(True, (2,)), (False, ())])
def test_a_start_of_text_stands_before_one_where_the_file_says_so(file, *, adds, starts):
    more = {"tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.add_bos_token": adds}
    tokenizer = Tokenizer(tokenizer_document(file.metadata | more))
    assert tokenizer.start_ids == starts


def test_control_tokens_are_special_and_padding_is_no_token(file, tokenizer):
    assert list(tokenizer_document(file.metadata).specials) == list(CONTROL_TOKENS)
    vocabulary = tokenizer.vocabulary
    assert vocabulary.id_of("[PAD0]") is None
    assert len(vocabulary) == byte_tokenizer().get_vocab_size()


def test_the_end_of_text_is_read(file: GgufFile) -> None:
    assert tokenizer_document(file.metadata).end_ids == (END_ID,)


def test_another_kind_of_tokenizer_is_refused_with_a_way_out(file: GgufFile) -> None:
    with pytest.raises(UnsupportedModelError, match=r"kind llama/qwen2.*folder or hub id"):
        tokenizer_document(file.metadata | {"tokenizer.ggml.model": "llama"})


@pytest.mark.parametrize(
    "change",
    [
        {"token_type": [1]},
        {"token_type": 7},
        {"tokens": 7},
        {"merges": [7]},
        {"merges": None},
        {"bos_token_id": 2**31, "add_bos_token": True},
        {"bos_token_id": "x", "add_bos_token": True},
        {"eos_token_id": "x"},
        {"eos_token_id": [1]},
        {"eos_token_id": float("inf")},
    ],
)
def test_a_tokenizer_that_is_not_whole_is_refused(file: GgufFile, change: dict[str, Any]) -> None:
    changed = {f"tokenizer.ggml.{name}": value for name, value in change.items()}
    with pytest.raises(ModelCorruptError, match="tokenizer is not whole"):
        tokenizer_document(file.metadata | changed)
