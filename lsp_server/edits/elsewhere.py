"""Where a second look may find an edit, as Sweep's server looks: far from the cursor."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from engine.host.protocol import Position
from engine.request import Diagnostic
from lsp_server.edits.edit_script import Hunk

_NEAR_LINES = 10  # on either side of the cursor, which the first look could change; as Sweep's
_NAME = re.compile(r"[^\W\d]\w*")
_MOST_NAMES = 8  # looked for, a rare one for 4 ms in a megabyte; an edit by hand removes one or two


def elsewhere(
    lines: Sequence[str], row: int, edit: Hunk | None, diagnostics: Sequence[Diagnostic]
) -> Position | None:
    """Return the nearest place where a name that the last edit removed recurs.

    Else that of the nearest diagnostic. None if there is none outside the cursor's surroundings.
    """
    name = None if edit is None else _removed_name(lines, edit)
    if name is not None:
        ends = dict(_places(lines, name))
        if (nearest := _nearest(ends, row)) is not None:
            return Position(nearest, ends[nearest])
    told = (one.line for one in diagnostics if one.line < len(lines))
    nearest = _nearest(told, row)
    return None if nearest is None else Position(nearest, 0)


def _removed_name(lines: Sequence[str], edit: Hunk) -> str | None:
    """Return the name, of those that an edit removed, in the fewest lines of the text."""
    old, new = (_NAME.findall("\n".join(side)) for side in (edit.old, edit.new))
    left = set(new)
    gone = dict.fromkeys(name for name in old if name not in left)
    counts = {name: sum(1 for _ in _places(lines, name)) for name in islice(gone, _MOST_NAMES)}
    known = {name: count for name, count in counts.items() if count}
    return min(known, key=known.__getitem__, default=None)


def _places(lines: Sequence[str], name: str) -> Iterator[tuple[int, int]]:
    """Yield the lines that have a name as a whole word, and where its first occurrence ends."""
    whole = re.compile(rf"\b{name}\b")
    found = ((number, whole.search(line)) for number, line in enumerate(lines) if name in line)
    yield from ((number, match.end()) for number, match in found if match is not None)


def _nearest(rows: Iterable[int], row: int) -> int | None:
    far = (one for one in rows if abs(one - row) > _NEAR_LINES)
    return min(far, key=lambda one: abs(one - row), default=None)
