"""A line of a parsed text, and the faults that replacing it causes."""

import ast
import time
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from tree_sitter import Node, Parser, Tree

from lsp_server.prompt.bounded_parse import edit_rows, parsed_in_time

_MOST_FAULTS = 50  # a text with so many is broken anyway
_MOST_NODES = 2_000  # nodes searched for faults
_MOST_CHILDREN = 10_000  # children of one node, as each becomes an object
_PATIENCE_S = 0.015  # seconds for one parse; the event loop waits for several
_CLOSING = (b")", b"]", b"}", b"<")
_MOST_PYTHON = 60_000  # bytes of the longest statements given to Python's own parser


class Fault(NamedTuple):
    """A node that the grammar could not read, or had to insert."""

    row: int
    column: int
    kind: str


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """The line `row` of a parsed text, whose `rows` are in UTF-8 with line ends."""

    parser: Parser
    tree: Tree
    language_id: str
    row: int
    rows: tuple[bytes, ...]

    @property
    def statement_bytes(self) -> int:
        """The length of the outermost statements around the line in Python; otherwise 0."""
        if self.language_id != "python":
            return 0
        here = range(self.row, self.row + 1)
        return len(EditedText(self.tree, self.rows, self.language_id, here, 1).statements)

    def with_text(self, text: str) -> "EditedText":
        """Replace the line by `text`, which may be several lines."""
        new = (text.encode("utf-8", "replace") + b"\n").splitlines(keepends=True)
        return self._with(new, self.row, self.row + 1)

    def without_block(self) -> "EditedText":
        """Remove the indented block around the line, with the lines that open and close it."""
        above = range(self.row, -1, -1)
        start = next((row for row in above if not self.rows[row][:1].isspace()), 0)
        below = range(self.row + 1, len(self.rows))
        end = next((row for row in below if self._begins_another(row)), len(self.rows))
        return self._with([], start, end)

    def _begins_another(self, row: int) -> bool:
        first = self.rows[row][:1]
        return not first.isspace() and first not in _CLOSING

    def _with(self, new: Sequence[bytes], start: int, end: int) -> "EditedText":
        rows = (*self.rows[:start], *new, *self.rows[end:])
        tree = self.tree.copy()
        edit_rows(tree, self.rows, start, end, new)
        parsed = parsed_in_time(self.parser, rows, tree, _PATIENCE_S, time.thread_time)
        changed = range(start, start + len(new))
        return EditedText(parsed, rows, self.language_id, changed, end - start)


@dataclass(frozen=True)
class EditedText:
    """A text in which the lines `new` replaced `num_old` others."""

    tree: Tree | None  # None if parsing takes too long
    rows: tuple[bytes, ...]
    language_id: str
    new: range
    num_old: int

    @property
    def num_here(self) -> int:
        """The number of faults in the new lines."""
        return sum(fault.row in self.new for fault in self.faults)

    @property
    def faults_around(self) -> frozenset[Fault]:
        """The faults in other lines, at their rows before the edit."""
        shift = self.num_old - len(self.new)
        return frozenset(
            fault._replace(row=fault.row + shift) if fault.row >= self.new.stop else fault
            for fault in self.faults
            if fault.row not in self.new
        )

    @cached_property
    def faults(self) -> tuple[Fault, ...]:
        """The grammar's faults, or the first of very many."""
        if self.tree is None:
            return (Fault(self.new.start, 0, "time"),)
        return tuple(islice(_faults(self.tree.root_node), _MOST_FAULTS))

    @cached_property
    def is_python(self) -> bool | None:
        """Whether Python, stricter than the grammar, reads the new lines; None if not tried."""
        statements = self.statements
        if self.language_id != "python" or not statements.strip() or len(statements) > _MOST_PYTHON:
            return None
        return parses_as_python(statements)

    @cached_property
    def statements(self) -> bytes:
        """The outermost statements around the new lines, and the one after them."""
        root = self.tree.root_node if self.tree is not None else None
        nodes = root.children if root is not None and root.child_count <= _MOST_CHILDREN else []
        first = bisect_left(nodes, self.new.start, key=lambda node: node.end_point.row)
        last = bisect_left(nodes, self.new.stop, key=lambda node: node.start_point.row)
        nodes = nodes[first : last + 1]  # the next one shows whether its indentation still fits
        if not nodes:
            return b""
        return b"".join(self.rows[nodes[0].start_point.row : nodes[-1].end_point.row + 1])


def parses_as_python(source: str | bytes) -> bool:
    """Whether Python's own parser accepts `source`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _faults(root: Node) -> Iterator[Fault]:
    """Yield the innermost broken nodes; beyond the limits, one fault stands for the rest."""
    nodes, num_seen = [root], 0
    while nodes:
        node = nodes.pop()
        num_seen += 1
        if num_seen > _MOST_NODES or node.child_count > _MOST_CHILDREN:
            yield Fault(-1, 0, "depth")
            return
        is_fault = node.is_error or node.is_missing
        children = () if is_fault else node.children
        broken = [child for child in children if child.has_error or child.is_missing]
        nodes += reversed(broken)
        if not broken and (node.is_missing or node.has_error):
            yield Fault(*node.start_point, node.type)
