"""What a model is called tells its special tokens."""

import pytest

from engine.host.upstream.special_tokens import format_of, names_by_model, numbered


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
    ids = numbered(names_by_model(model_name))
    assert format_of(ids, model_name).prefix_id == ids[prefix]


def test_mellums_suffix_stands_first_and_starcoders_does_not():
    mellum, starcoder = (
        format_of(numbered(names_by_model(name)), name) for name in ("mellum", "starcoder2")
    )
    assert mellum.suffix_first
    assert not starcoder.suffix_first


def test_qwens_prompts_show_other_files():
    assert format_of(numbered(names_by_model("qwen")), "qwen").shows_files


def test_an_unknown_name_tells_nothing():
    assert names_by_model("my-model") == ()
