"""A model's chat template is found where its kind of files keeps it."""

import json

import pytest

from engine.errors import ModelCorruptError
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.gguf_model import GgufModel
from tests.support.byte_tokenizer import byte_tokenizer
from tests.support.tiny_gguf import END_ID, write_tiny_gguf

TEMPLATE = "{{ bos_token }}{{ messages[0].content }}"
NAMED = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": TEMPLATE}]


def folder_with(folder, config=None, beside=None):
    (folder / "config.json").write_text("{}")
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if beside is not None:
        (folder / "chat_template.jinja").write_bytes(beside)
    return FolderModel(folder, "tiny")


@pytest.mark.parametrize(
    ("config", "beside", "expected"),
    [
        ({"chat_template": TEMPLATE}, None, TEMPLATE),
        ({"chat_template": NAMED}, None, TEMPLATE),
        ({"chat_template": NAMED[:1]}, None, ""),
        ({"chat_template": "old"}, TEMPLATE.encode(), TEMPLATE),
        (None, TEMPLATE.encode(), TEMPLATE),
        ({}, None, ""),
        (None, None, ""),
    ],
)
def test_a_folder_keeps_it_in_a_file_of_its_own_or_in_the_configuration(
    tmp_path, config, beside, expected
):
    document = folder_with(tmp_path, config, beside).tokenizer_document()
    assert document.chat_template == expected


def test_special_tokens_are_told_by_name_or_as_objects(tmp_path):
    tokens = {"bos_token": {"content": "<|repo_name|>"}, "eos_token": "<|endoftext|>"}
    document = folder_with(tmp_path, tokens | {"chat_template": TEMPLATE}).tokenizer_document()
    assert document.chat_names == {"bos_token": "<|repo_name|>", "eos_token": "<|endoftext|>"}


def test_a_change_of_the_template_is_a_change_of_the_model(tmp_path):
    before = folder_with(tmp_path, beside=b"one").fingerprint
    assert folder_with(tmp_path, beside=b"other").fingerprint != before


def test_a_template_that_is_no_text_is_refused(tmp_path):
    with pytest.raises(ModelCorruptError, match="chat_template"):
        folder_with(tmp_path, beside=b"\xff").tokenizer_document()


def test_a_gguf_file_keeps_it_in_its_metadata(tmp_path):
    more: dict[str, str | int] = {
        "tokenizer.chat_template": TEMPLATE,
        "tokenizer.ggml.bos_token_id": END_ID,
    }
    document = GgufModel(write_tiny_gguf(tmp_path / "a.gguf", more=more)).tokenizer_document()
    assert document.chat_template == TEMPLATE
    assert document.chat_names == {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
