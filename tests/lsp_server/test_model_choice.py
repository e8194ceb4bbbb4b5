"""A model's name is judged where it is typed."""

import re

import pytest

from engine.model_names import ALIASES, AUTO_MODEL
from lsp_server.model_choice import check_name, offered_models


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text("{}")
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    (tmp_path / "notes.txt").touch()
    return tmp_path


@pytest.mark.parametrize(
    "name", ["auto", "1.5b", " 7b ", "owner/name", "FOLDER/tiny", "FOLDER/tiny.gguf"]
)
def test_what_can_be_a_model_is_taken(folder, name):
    assert check_name(name.replace("FOLDER", str(folder))) == {"ok": True, "near": []}


@pytest.mark.parametrize("name", ["qwen" * 999, "qwen" * 999 + "9b"])
def test_of_a_name_without_end_a_piece_is_repeated(name):
    sentence = check_name(name)["sentence"]
    assert "qwen" in sentence
    assert len(sentence) < 300


@pytest.mark.parametrize(
    ("name", "sentence", "near"),
    [
        ("qwen9b", "no model is called 'qwen9b'", ["7b", "14b"]),
        ("gpt", "known are 0.5b, 1.5b", []),
        ("./tiny", "write the whole path", []),
        ("FOLDER/nothing", "there is no", []),
        ("FOLDER/notes.txt", "is not a .gguf file", []),
        ("FOLDER", "holds no config.json", []),
    ],
)
def test_what_cannot_is_refused_with_the_reason(folder, name, sentence, near):
    told = check_name(name.replace("FOLDER", str(folder)))
    assert (told["ok"], told["near"]) == (False, near)
    assert sentence in told["sentence"]


def test_each_alias_is_offered_once_and_with_its_cost():
    names = [one["name"] for one in offered_models()]
    assert sorted(names) == sorted([AUTO_MODEL, *ALIASES])
    assert all(one["description"] for one in offered_models())
    large = {one["name"]: one["description"] for one in offered_models()}
    for name in ("3b", "7b", "14b", "32b"):
        assert re.search(r"for a GPU with \d+ GB free", large[name])
