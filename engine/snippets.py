"""Pieces of the open buffers that share most names with the text around the cursor.

Copilot's way without embeddings: windows of lines, compared by the Jaccard index of their
identifiers. The model sees them before the file, so it writes what this project writes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.request import Buffer, CompletionRequest, Snippet

_LINES, _STEP = 32, 8  # of a window, and from one to the next
_AROUND_LINES = 16  # before and behind the cursor
_ANCHOR_LINES = 8  # what stands before is looked at anew after so many lines
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # a form feed or U+2028 ends no line of code
_WORD = re.compile(r"[^\W\d]\w{2,}")


def related_snippets(request: CompletionRequest) -> list[Snippet]:
    """Return the best window of every buffer that shares a name with the cursor, best first."""
    around = _names_around(request.prefix, request.suffix)
    best = [window for buffer in request.open_buffers if (window := _best(buffer, around))]
    best.sort(key=lambda scored: -scored.score)
    return [scored.snippet for scored in best]


def _names_around(prefix: str, suffix: str) -> frozenset[str]:
    """Names near the cursor, but those of its line and of the few lines since the last anchor.

    So the snippets, and the prompt that begins with them, stay while the user types.
    """
    before = prefix.split("\n")[:-1]
    anchor = len(before) // _ANCHOR_LINES * _ANCHOR_LINES or len(before)
    before = before[max(0, anchor - _AROUND_LINES) : anchor]
    behind = suffix.split("\n")[1 : 1 + _AROUND_LINES]
    return frozenset(_WORD.findall("\n".join(before + behind)))


@dataclass(frozen=True, slots=True)
class _Scored:
    score: float
    snippet: Snippet


def _best(buffer: Buffer, around: frozenset[str]) -> _Scored | None:
    scored = (
        _Scored(_jaccard(around, text), Snippet(buffer.path, text))
        for text in _windows(buffer.text)
    )
    best = max(scored, key=lambda one: one.score, default=None)
    return best if best is not None and best.score > 0 else None


def _windows(text: str) -> Iterator[str]:
    lines = _LINE.findall(text)
    for start in range(0, max(1, len(lines) - _LINES + _STEP), _STEP):
        yield "".join(lines[start : start + _LINES])


def _jaccard(around: frozenset[str], text: str) -> float:
    words = frozenset(_WORD.findall(text))
    return len(around & words) / max(1, len(around | words))
