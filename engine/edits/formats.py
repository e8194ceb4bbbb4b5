"""Which form of next edits a model knows."""

import re
from collections.abc import Collection

from engine.edits.edit_prompt import EditFormat
from engine.edits.instinct import instinct_prompt
from engine.edits.instruct import instruct_prompt
from engine.edits.sweep import small_sweep_prompt, sweep_prompt
from engine.edits.zeta import zeta_1_prompt, zeta_2_prompt, zeta_21_prompt
from engine.model_names import title_of

_BY_TITLE: tuple[tuple[str, EditFormat], ...] = (
    (r"sweep-next-edit-(v2-)?0\.5b", small_sweep_prompt),
    (r"sweep-next-edit", sweep_prompt),
    (r"(?<![a-z])zeta-?2\.1(?!\d)", zeta_21_prompt),
    (r"(?<![a-z])zeta-?2(?!\d)", zeta_2_prompt),
    (r"(?<![a-z])zeta(?![a-z\d])", zeta_1_prompt),
    (r"(?<![a-z])instinct(?![a-z])", instinct_prompt),
)


def format_for(model_name: str, special_names: Collection[str]) -> EditFormat | None:
    """Return the form for a model, by its name and the names of its special tokens.

    None means that it proposes no next edits. Any instruct model with Qwen's form of chats can.
    """
    title = title_of(model_name).lower()
    for pattern, one in _BY_TITLE:
        if re.search(pattern, title):
            return one
    return instruct_prompt if "instruct" in title and "<|im_start|>" in special_names else None
