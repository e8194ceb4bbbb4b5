"""The form of next edits that a model knows."""

import pytest

from engine.edits.formats import format_for
from engine.edits.sweep import SweepFormat

SMALL, LARGE = SweepFormat(2, 5, rewrites_above=True), SweepFormat(10, 10, rewrites_above=False)
QWEN = ("<|fim_prefix|>", "<|file_sep|>")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("sweepai/sweep-next-edit-0.5B", SMALL),
        ("/models/sweep-next-edit-0.5b.q8_0.gguf", SMALL),
        ("sweepai/sweep-next-edit-1.5B", LARGE),
        ("/models/sweep-next-edit-1.5b.q8_0.v2.gguf", LARGE),
        ("sweepai/sweep-next-edit-v2-7B", LARGE),
        ("owner/sweep-next-edit-v2-7B-GGUF:Q4_K_M", LARGE),
        ("offline", SMALL),
        ("Qwen2.5-Coder-1.5B-Instruct", SMALL),
        ("1.5b", None),
        ("7b", None),
        ("owner/sweeping-changes-7b", None),
    ],
)
def test_a_model_is_known_by_its_name(name, form):
    assert format_for(name, QWEN) == form


def test_an_instruct_model_without_the_token_between_files_proposes_nothing():
    assert format_for("owner/Llama-3-Instruct", ("<|begin_of_text|>",)) is None
