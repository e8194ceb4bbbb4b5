"""Where a second look may find an edit, as Sweep's server looks: far from the cursor."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from engine.host.protocol import Position
from engine.request import Diagnostic
from lsp_server.edits.edit_script import Hunk

_NEAR_LINES = 10  # on either side of the cursor, which the first look could change; as Sweep's
_FAR_LINES = 1_000  # on either side of the cursor, which are searched in 10 ms
_NAME = re.compile(r"[^\W\d]\w*")
_MOST_NAMES = 8  # looked for; an edit by hand removes one or two


def elsewhere(
    lines: Sequence[str], row: int, edit: Hunk | None, diagnostics: Sequence[Diagnostic]
) -> Iterator[Position]:
    """Yield the nearest place where a name that the last edit removed recurs.

    Then that of the nearest diagnostic. Neither is near the cursor, nor is one near the other.
    """
    looked = [row]
    names = [] if edit is None else _removed_names(edit)
    ends = _recurring(lines, row, names) if names else {}
    if (nearest := _nearest(ends, looked)) is not None:
        yield Position(nearest, ends[nearest])
        looked.append(nearest)
    told = (one.line for one in diagnostics if one.line < len(lines))
    if (nearest := _nearest(told, looked)) is not None:
        yield Position(nearest, 0)


def _recurring(lines: Sequence[str], row: int, names: Sequence[str]) -> dict[int, int]:
    """Return the lines around a row that have the rarest of these names, and where it first ends."""
    any_name = re.compile(rf"\b(?:{'|'.join(names)})\b")
    top = max(0, row - _FAR_LINES)
    ends = defaultdict[str, dict[int, int]](dict)
    for number, line in enumerate(lines[top : row + _FAR_LINES], top):
        for match in any_name.finditer(line):
            ends[match[0]].setdefault(number, match.end())
    return min((ends[name] for name in names if name in ends), key=len, default={})


def _removed_names(edit: Hunk) -> list[str]:
    old, new = (_NAME.findall("\n".join(side)) for side in (edit.old, edit.new))
    left = set(new)
    gone = dict.fromkeys(name for name in old if name not in left)
    return list(islice(gone, _MOST_NAMES))


def _nearest(rows: Iterable[int], looked: Sequence[int]) -> int | None:
    """Return the row nearest to the first of these, and near none of them."""
    far = (one for one in rows if all(abs(one - row) > _NEAR_LINES for row in looked))
    return min(far, key=lambda one: abs(one - looked[0]), default=None)
