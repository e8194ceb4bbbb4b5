"""Prompts in the model's own form, in pieces that stand for tokens."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.host.upstream.prompt_writer import (
    EstimatedTokens,
    PromptWriter,
    names_by_model,
)
from engine.request import CompletionRequest

ROOT = Path(__file__).parents[4]
CODEC = EstimatedTokens({"<|fim_prefix|>": 2, "<|fim_middle|>": 3})


@given(st.text())
def test_every_text_comes_back(text):
    ids = CODEC.encode(text)
    assert CODEC.decode(ids) == text
    assert all(one >= 256 or one == 1 for one in ids)


def test_special_tokens_are_numbers_that_no_text_has():
    assert CODEC.decode([2, *CODEC.encode("a<|fim_prefix|>"), 3]) == (
        "<|fim_prefix|>a<|fim_prefix|><|fim_middle|>"
    )
    assert not {2, 3} & set(CODEC.encode("<|fim_prefix|>"))


def test_a_surrogate_without_its_half_is_replaced():
    assert CODEC.decode(CODEC.encode("a\ud800")) == "a\ufffd"


def test_code_has_some_three_characters_a_piece():
    """A tokenizer has some three and a half: a prompt is rather shorter than its budget."""
    text = "".join(path.read_text("utf-8") for path in sorted((ROOT / "engine").rglob("*.py"))[::9])
    assert 2.5 < len(text) / len(CODEC.encode(text)) < 3.6


def shown(model_name):
    """A prompt for a model of that name."""
    writer = PromptWriter(names_by_model(model_name), model_name)
    return writer.text_of(writer.write(CompletionRequest("x = ", "\n"), is_healed=True))


@pytest.mark.parametrize(
    ("model_name", "prefix"),
    [
        ("Qwen/Qwen2.5-Coder-7B", "<|fim_prefix|>"),
        ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "<|fim_prefix|>"),
        ("google/codegemma-2b", "<|fim_prefix|>"),
        ("ibm-granite/granite-4.0-h-tiny", "<|fim_prefix|>"),
        ("ibm-granite/granite-8b-code-base", "<fim_prefix>"),
        ("bigcode/starcoder2-3b", "<fim_prefix>"),
        ("JetBrains/Mellum-4b-base", "<fim_prefix>"),
        ("bigcode/santacoder", "<fim-prefix>"),
        ("ByteDance-Seed/Seed-Coder-8B-Base", "<[fim-prefix]>"),
        ("deepseek-ai/deepseek-coder-1.3b-base", "<｜fim▁begin｜>"),  # noqa: RUF001 - its own
        ("THUDM/GLM-4.5", "<|code_prefix|>"),
    ],
)
def test_a_family_is_known_by_name(model_name, prefix):
    assert prefix in shown(model_name)


def test_mellums_suffix_stands_first_and_starcoders_does_not():
    assert shown("mellum").startswith("<fim_suffix>")
    assert shown("starcoder2").startswith("<fim_prefix>")


def test_an_unknown_name_tells_nothing():
    assert names_by_model("my-model") == ()
