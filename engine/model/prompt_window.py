"""The part of a document that fits a prompt: text near the cursor, cut at line starts."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from engine.text.lines import STEADY_LINES

_ANCHOR_LINES = 32  # windows begin at multiples, so that a new line keeps cached keys valid
CHARS_PER_TOKEN = 6  # code has about 4 on average; text that can hardly fit is not encoded
_SUFFIX_PART = 4  # the suffix gets a quarter of the budget
_SUFFIX_STEPS = 8  # the suffix grows by eighths of the budget
_FIRST_SUFFIX_STEPS = 4  # the same if the suffix comes first and moves the whole prompt
_NEIGHBOUR_PART = 3  # other files get at least a third
_NEIGHBOUR_STEPS = 8  # the room of other files changes by eighths of the budget
_GROWTH_PART = 6  # a sixth of the budget stays free for lines typed before the next anchor


class TextCodec(Protocol):
    """A model's tokenizer, or an estimate of one. Decoding an encoded text returns the text."""

    start_ids: tuple[int, ...]  # ids that the model expects before any text

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        ...

    def decode(self, token_ids: Iterable[int], /) -> str:
        """Return the text of the ids; invalid UTF-8 becomes U+FFFD."""
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """Text before the cursor, and the tokens of the text after it."""

    prefix: str
    suffix_ids: tuple[int, ...]


def neighbour_room(tokenizer: TextCodec, prefix: str, suffix: str, budget: int) -> int:
    """Return the tokens that other files may take: the rest of `budget`, at least a third.

    Other files precede this one, so the result stays the same while it grows, except at anchors.
    """
    least = budget // _NEIGHBOUR_PART
    behind = suffix.partition("\n")[2]
    if len(prefix) + len(behind) > budget * CHARS_PER_TOKEN:
        return least
    num_new = (prefix.count("\n") + suffix.count("\n")) % STEADY_LINES
    before = prefix.split("\n")[: -1 - num_new]
    num_tokens = len(tokenizer.encode("\n".join(before))) + len(tokenizer.encode(behind))
    step = max(1, budget // _NEIGHBOUR_STEPS)
    return max(least, (budget - budget // _GROWTH_PART - num_tokens) // step * step)


def cut_window(
    tokenizer: TextCodec, prefix: str, suffix: str, budget: int, *, suffix_first: bool = False
) -> Window:
    """Cut the text to `budget` tokens. A side that needs less than its share lends the rest."""
    suffix_share = budget // _SUFFIX_PART
    suffix_ids = _head(tokenizer, suffix, suffix_share)
    near, num_near = _tail(tokenizer, prefix, budget - len(suffix_ids))
    # In steps, so that not every typed token moves the end of the suffix, which precedes it.
    step = max(1, budget // (_FIRST_SUFFIX_STEPS if suffix_first else _SUFFIX_STEPS))
    rest = (budget - num_near) // step * step
    if rest > suffix_share:
        suffix_ids = _head(tokenizer, suffix, rest)
    return Window(near, tuple(suffix_ids))


def _tail(tokenizer: TextCodec, text: str, budget: int) -> tuple[str, int]:
    """Return the end of `text` that fits `budget` tokens, and its number of tokens."""
    if budget <= 0 or not text:
        return "", 0
    for start in _starts(tokenizer, text, budget):
        count = len(tokenizer.encode(text[start:]))
        if count <= budget:
            return text[start:], count
    # Cut at a line start within a block, or inside the last line if it is too long.
    ids = tokenizer.encode(text[-budget * CHARS_PER_TOKEN :])[-budget:]
    near = tokenizer.decode(ids).lstrip("\ufffd")
    line_start = near.find("\n") + 1
    if 0 < line_start < len(near):
        near = near[line_start:]
    return near, len(tokenizer.encode(near))


def _starts(tokenizer: TextCodec, text: str, budget: int) -> list[int]:
    """Return the anchors from which `text` may fit, farthest first."""
    anchors = _anchors(text, max(0, len(text) - budget * CHARS_PER_TOKEN))
    total, starts = 0, []
    for start, end in reversed([*pairwise([*anchors, len(text)])]):
        total += len(tokenizer.encode(text[start:end]))
        if total > budget:
            break
        starts.append(start)
    return starts[::-1]


def _anchors(text: str, first: int) -> list[int]:
    starts = [0, *(newline.end() for newline in re.finditer("\n", text))]
    return [start for start in starts[::_ANCHOR_LINES] if first <= start < len(text)]


def _head(tokenizer: TextCodec, text: str, budget: int) -> list[int]:
    """Return the first tokens of `text`, in whole lines if one fits."""
    if budget <= 0:
        return []
    near = text[: budget * CHARS_PER_TOKEN]
    ids = tokenizer.encode(near)
    if len(ids) <= budget and len(near) == len(text):
        return ids
    near = tokenizer.decode(ids[:budget]).rstrip("\ufffd")
    line_end = near.rfind("\n") + 1
    return tokenizer.encode(near[:line_end] if line_end else near)[:budget]
