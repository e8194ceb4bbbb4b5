"""Which form of next edits a model knows."""

import re
from collections.abc import Collection

from engine.edits.edit_prompt import EditFormat
from engine.edits.instinct import InstinctFormat
from engine.edits.instruct import InstructFormat
from engine.edits.sweep import SweepFormat
from engine.edits.zeta import Zeta1Format, Zeta2Format
from engine.model_names import title_of

_SMALL_SWEEP = SweepFormat(above=2, below=5, rewrites_above=True)
_LARGE_SWEEP = SweepFormat(above=10, below=10, rewrites_above=False)
_BY_TITLE: tuple[tuple[str, EditFormat], ...] = (
    (r"sweep-next-edit-(v2-)?0\.5b", _SMALL_SWEEP),
    (r"sweep-next-edit", _LARGE_SWEEP),
    (r"(?<![a-z])zeta-?2\.1(?!\d)", Zeta2Format(has_markers=True)),
    (r"(?<![a-z])zeta-?2(?!\d)", Zeta2Format(has_markers=False)),
    (r"(?<![a-z])zeta(?![a-z\d])", Zeta1Format()),
    (r"(?<![a-z])instinct(?![a-z])", InstinctFormat()),
)


def format_for(model_name: str, special_names: Collection[str]) -> EditFormat | None:
    """Return the form for a model, by its name and the names of its special tokens.

    None means that it proposes no next edits. Any instruct model with Qwen's form of chats can.
    """
    title = title_of(model_name).lower()
    for pattern, one in _BY_TITLE:
        if re.search(pattern, title):
            return one
    return InstructFormat() if "instruct" in title and "<|im_start|>" in special_names else None
