"""Parses and reads trees within bounds of time and memory, whatever the text."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, pairwise

from tree_sitter import Node, Parser, Point, Tree

_TOKEN = re.compile(rb"\w+|[^\w\s]")
_PIECE = 600  # tokens; code of this length parses in about 1 ms
_PIECE_S = 0.008  # seconds; most pieces of code take 1 ms, hostile ones 10 to 30
_STRETCH_S = 0.02  # seconds of the event loop's thread, which serves all documents
_MOST_STRETCHES = 25  # stretches for a whole text, as a hostile one would take minutes
MOST_DEPTH = 1_000  # nodes around a cursor; code nested deeper is not written by hand


def parsed_in_stretches(
    parser: Parser, rows: Sequence[bytes], old: Tree | None
) -> Iterator[Tree | None]:
    """Yield None after each stretch, then the tree, if any; `parser` is reserved meanwhile."""
    num_left, clock = _MOST_STRETCHES, time.thread_time
    began = clock()
    for fits in _fitting_pieces(parser, b"".join(rows), clock):
        if not fits or not num_left:
            return
        if clock() > began + _STRETCH_S:
            yield None
            num_left, began = num_left - 1, clock()
    while num_left:
        tree = parsed_in_time(parser, rows, old, _STRETCH_S, clock, goes_on=True)
        yield tree
        num_left = 0 if tree else num_left - 1


def parsed_in_time(
    parser: Parser,
    rows: Sequence[bytes],
    old: Tree | None,  # the tree of the former text, edited by `edit_rows`
    limit_s: float,
    clock: Callable[[], float],
    *,
    goes_on: bool = False,  # the next call continues where this one stops
) -> Tree | None:
    """Return the tree of `rows`, or None after `limit_s`: a hostile text takes minutes."""
    deadline = clock() + limit_s

    def is_late(*_progress: object) -> bool:
        return clock() > deadline

    def read(_offset: int, point: Point) -> bytes:
        # Do not feign an end when time is over: the end costs most, see `is_ordinary`. tree-sitter
        # 0.26 never frees these bytes, so return kept rows; a keystroke leaks less than 1 KB.
        return rows[point.row][point.column :] if point.row < len(rows) else b""

    try:
        if old is None:
            tree = parser.parse(read, progress_callback=is_late)
        else:
            tree = parser.parse(read, old, progress_callback=is_late)
    except ValueError:  # stopped; without a reset, the parser would continue this text
        if not goes_on:
            parser.reset()
        return None
    return tree if goes_on or not is_late() else None


def edit_rows(
    tree: Tree, rows: Sequence[bytes], start: int, end: int, new: Sequence[bytes]
) -> None:
    """Edit the tree of `rows` for a replacement of rows `start` to `end` by `new`."""
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
    """Whether the parser can finish `source` without harm, and likely in time.

    In nonsense it may follow many paths at once. Merging them at the end cannot be stopped: 10,000
    tokens take seconds and gigabytes, twice as many four times that. So pieces are tried first.
    """
    deadline = clock() + limit_s
    return all(fits and clock() <= deadline for fits in _fitting_pieces(parser, source, clock))


def _fitting_pieces(parser: Parser, source: bytes, clock: Callable[[], float]) -> Iterator[bool]:
    """Yield whether each piece parses as quickly as code; a text of one piece costs nothing."""
    starts = (token.start() for token in islice(_TOKEN.finditer(source), 0, None, _PIECE))
    first = next(starts, 0)
    for start, end in pairwise(chain([first], starts, [len(source)])):
        if (start, end) != (first, len(source)):
            began = clock()
            parser.parse(source[start:end])
            yield clock() <= began + _PIECE_S


def nodes_around(tree: Tree, cursor: Point) -> list[Node]:
    """Return nodes around the character before `cursor`, smallest first; of many, outer ones."""
    leaf, node = leaf_before(tree, cursor), tree.root_node
    nodes = [node]
    while leaf is not None and node != leaf and len(nodes) <= MOST_DEPTH:
        below = node.child_with_descendant(leaf)  # `Node.parent` would search from the root
        if below is None:
            break
        node = below
        nodes.append(node)
    return nodes[::-1]


def leaf_before(tree: Tree, cursor: Point) -> Node | None:
    """Return the smallest node around the character before the cursor."""
    before = Point(cursor.row, max(cursor.column - 1, 0))
    return tree.root_node.descendant_for_point_range(before, cursor)
