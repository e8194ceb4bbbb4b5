"""What becomes of an answer to the prompt of an edit."""

import pytest

from engine.edits.edit_prompt import EditPrompt, RefusedEditError
from engine.request import EditOutcome


def read(prompt: EditPrompt, answer: str, *, is_cut: bool = False) -> EditOutcome:
    return prompt.read(answer, is_cut)


def refusal(prompt: EditPrompt, answer: str, *, is_cut: bool = False) -> str:
    """Return why an answer changes nothing."""
    with pytest.raises(RefusedEditError) as refused:
        prompt.read(answer, is_cut)
    return refused.value.code
