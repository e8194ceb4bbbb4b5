"""A tokenizer from GGUF metadata is the one that the file was written from."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.loading import gguf_tokenizer
from engine.model.loading.gguf_file import GgufFile
from engine.model.tokenizer import Tokenizer
from tests.support.byte_tokenizer import CONTROL_TOKENS, byte_tokenizer
from tests.support.tiny_gguf import END_ID, write_tiny_gguf


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> GgufFile:
    return GgufFile(write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf"))


@pytest.fixture(scope="module")
def tokenizer(file: GgufFile) -> Tokenizer:
    return Tokenizer.from_json(gguf_tokenizer.tokenizer_json(file.metadata))


_ORIGINAL = byte_tokenizer()


@given(text=st.text(max_size=40))
def test_encodes_as_the_original_does(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.encode(text) == _ORIGINAL.encode(text).ids


def test_control_tokens_are_special_and_padding_is_no_token(
    file: GgufFile, tokenizer: Tokenizer
) -> None:
    document = json.loads(gguf_tokenizer.tokenizer_json(file.metadata))
    assert [token["content"] for token in document["added_tokens"]] == list(CONTROL_TOKENS)
    vocabulary = tokenizer.vocabulary
    assert vocabulary.id_of("[PAD0]") is None
    assert len(vocabulary) == byte_tokenizer().get_vocab_size()


def test_the_end_of_text_is_read(file: GgufFile) -> None:
    assert gguf_tokenizer.end_ids(file.metadata) == [END_ID]


def test_another_kind_of_tokenizer_is_refused_with_a_way_out(file: GgufFile) -> None:
    with pytest.raises(UnsupportedModelError, match=r"kind llama/qwen2.*folder or hub id"):
        gguf_tokenizer.tokenizer_json(file.metadata | {"tokenizer.ggml.model": "llama"})


def test_a_vocabulary_of_unequal_lists_is_refused(file: GgufFile) -> None:
    with pytest.raises(ModelCorruptError, match="tokenizer is not whole"):
        gguf_tokenizer.tokenizer_json(file.metadata | {"tokenizer.ggml.token_type": [1]})
