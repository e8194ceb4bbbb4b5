"""Parsing that ends in time and within memory, whatever the text is."""

import re
from collections.abc import Callable, Sequence
from itertools import islice, pairwise

from tree_sitter import Parser, Point, Tree

_TOKEN = re.compile(rb"\w+|[^\w\s]")
_PIECE = 1_500  # tokens
_PIECE_S = 0.03  # most pieces of code take 3 ms; of the texts meant here, 100 and more


def parsed_in_time(
    parser: Parser,
    rows: Sequence[bytes],
    old: Tree | None,
    limit_s: float,
    clock: Callable[[], float],
) -> Tree | None:
    """The tree of `rows`, or None if that takes longer: a hostile text takes minutes.

    `old` is the tree of the text before its last edits, which it knows.
    """
    deadline = clock() + limit_s

    def is_late(*_progress: object) -> bool:
        return clock() > deadline

    def read(_offset: int, point: Point) -> bytes:
        # Never a false end where time is over: an end is what costs most, see `is_ordinary`.
        # tree-sitter 0.26 never frees what it gets here, so it gets lines that are kept anyway:
        # less than a kilobyte is lost at each keystroke.
        return rows[point.row][point.column :] if point.row < len(rows) else b""

    try:
        if old is None:
            tree = parser.parse(read, progress_callback=is_late)
        else:
            tree = parser.parse(read, old, progress_callback=is_late)
    except ValueError:  # it was stopped, and would go on with this text
        parser.reset()
        return None
    return None if is_late() else tree


def edit_rows(
    tree: Tree, rows: Sequence[bytes], start: int, end: int, new: Sequence[bytes]
) -> None:
    """Tell the tree of `rows` that `new` will replace those from `start` to `end`."""
    first = sum(map(len, islice(rows, start)))
    tree.edit(
        first,
        first + sum(map(len, rows[start:end])),
        first + sum(map(len, new)),
        Point(start, 0),
        Point(end, 0),
        Point(start + len(new), 0),
    )


def is_ordinary(parser: Parser, source: bytes, limit_s: float, clock: Callable[[], float]) -> bool:
    """Whether the parser can come to the end of `source` without harm, and likely in time.

    Through text that makes no sense it may follow many paths at once. At its end it merges them
    all, which nothing can stop: seconds and gigabytes for 10,000 tokens, and four times as much for
    twice as many. So each piece is tried on its own first.
    """
    starts = [found.start() for found in islice(_TOKEN.finditer(source), 0, None, _PIECE)]
    if len(starts) < 2:
        return True
    deadline = clock() + limit_s
    for start, end in pairwise([*starts, len(source)]):
        began = clock()
        parser.parse(source[start:end])
        if clock() > min(began + _PIECE_S, deadline):
            return False
    return True
