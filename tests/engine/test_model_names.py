"""What a name means shows in how it is written, whatever lies on the disk."""

import pytest

from engine.errors import ConfigurationError
from engine.model_names import (
    EMBEDDED,
    HUB_ALIASES,
    gguf_tag,
    holds_gguf,
    is_same,
    kind_of,
    near_names,
    path_of,
    serves,
    title_of,
    why_unknown,
)
from engine.offline_parts import OFFLINE_MODELS


def test_the_embedded_models_are_those_that_are_known() -> None:
    assert {name: model.name for name, model in OFFLINE_MODELS.items()} == EMBEDDED


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("qwen9b", ["7b", "14b"]),
        ("Qwen2.5-Coder-7B", ["7b"]),
        ("1.5", ["1.5b"]),
        ("offlin", ["offline", "offline-1.5b"]),
        ("seed-coder", ["seed-coder-8b"]),
        ("mellum", ["mellum-4b"]),
        ("sweep", ["sweep-7b", "sweep-1.5b"]),
        ("gpt", []),
        ("", []),
    ],
)
def test_what_may_have_been_meant_is_near_in_its_letters_or_its_size(typed, near) -> None:
    assert near_names(typed) == near
    assert all(name in why_unknown(typed) for name in near or HUB_ALIASES)


def test_a_model_has_a_title_for_people() -> None:
    titles = {
        "offline": "Qwen2.5-Coder-0.5B-Instruct",
        "1.5b": "Qwen2.5-Coder-1.5B",
        "seed-coder-8b": "Seed-Coder-8B-Base",
        "sweep-1.5b": "sweep-next-edit-1.5B",
        "owner/some-model": "some-model",
        "/models/tiny.gguf": "tiny",
        "~/models/seven": "seven",
    }
    assert {name: title_of(name) for name in titles} == titles


def test_a_gguf_file_of_the_hub_is_known_by_its_repository_or_a_tag() -> None:
    assert holds_gguf("ggml-org/Qwen2.5-Coder-7B-Q8_0-GGUF")
    assert holds_gguf("owner/model:Q4_K_M@v2")
    assert not holds_gguf("Qwen/Qwen2.5-Coder-7B-Instruct-GPTQ-Int4")
    assert gguf_tag("owner/model:Q4_K_M@v2") == ("owner/model", "Q4_K_M")
    assert gguf_tag("owner/model") == ("owner/model", None)


def test_an_alias_is_the_model_that_it_stands_for() -> None:
    assert is_same("1.5b", "Qwen/Qwen2.5-Coder-1.5B")
    assert not is_same("offline", "0.5b")


@pytest.mark.parametrize("wanted", ["offline", "auto"])
def test_a_host_of_the_best_model_serves_those_that_want_that_model(wanted) -> None:
    assert serves(wanted, "auto", "Qwen2.5-Coder-0.5B-Instruct")
    assert not serves("1.5b", "auto", "Qwen2.5-Coder-0.5B-Instruct")
    assert not serves(wanted, "1.5b", "Qwen2.5-Coder-0.5B-Instruct")
    assert serves("1.5b", "Qwen/Qwen2.5-Coder-1.5B", "")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("offline", "embedded"),
        ("1.5b", "alias"),
        ("Qwen/Qwen2.5-Coder-7B", "hub"),
        ("Qwen/Qwen2.5-Coder-7B@0123456789abcdef", "hub"),
        ("Qwen/Qwen2.5-Coder-7B-Instruct-GGUF:Q4_K_M@0123", "hub"),
        ("Qwen/Qwen2.5-Coder-7B:", "unknown"),
        ("Qwen/Qwen2.5-Coder-7B@", "unknown"),
        ("Qwen/Qwen2.5-Coder-7B@a/b", "unknown"),
        ("./Qwen/Qwen2.5-Coder-7B", "path"),
        ("../models/7b", "path"),
        ("/models/7b", "path"),
        ("~/models/7b", "path"),
        ("tiny.gguf", "path"),
        ("models/tiny.gguf", "path"),
        (".", "path"),
        ("auto", "auto"),
        ("models", "unknown"),
        ("a/b/c", "unknown"),
        ("", "unknown"),
    ],
)
def test_how_a_name_is_written_says_what_it_is(tmp_path, monkeypatch, name, kind) -> None:
    (tmp_path / "Qwen" / "Qwen2.5-Coder-7B").mkdir(parents=True)
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    assert kind_of(name) == kind


def test_a_home_folder_of_nobody_is_a_sentence() -> None:
    with pytest.raises(ConfigurationError, match="begins with no known home folder"):
        path_of("~nobody-of-that-name/7b")
