"""A line of a parsed text: what the parser finds wrong if other text replaces the line."""

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

_MOST_FAULTS = 50  # with so many, the text is broken, and more of them say nothing new
_MOST_NODES = 2_000  # that are looked through for them
_MOST_CHILDREN = 10_000  # of one node; each becomes an object
_PATIENCE_S = 0.015  # of this thread, for one parse: the event loop waits for several
_CLOSING = (b")", b"]", b"}", b"<")
_MOST_PYTHON = 60_000  # bytes of a statement that Python's own parser is asked about


class Fault(NamedTuple):
    """A node that the grammar could not read, or had to make up."""

    row: int
    column: int
    kind: str


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """The line `row` of a text that was parsed: `rows` are its lines in UTF-8, with line ends."""

    parser: Parser
    tree: Tree
    language_id: str
    row: int
    rows: tuple[bytes, ...]

    @property
    def statement_bytes(self) -> int:
        """The length of the outermost statements around the line, where Python itself reads them."""
        if self.language_id != "python":
            return 0
        here = range(self.row, self.row + 1)
        return len(EditedText(self.tree, self.rows, self.language_id, here, 1).statements)

    def with_text(self, text: str) -> "EditedText":
        """The text with `text`, which may be several lines, in place of the line."""
        new = (text.encode("utf-8", "replace") + b"\n").splitlines(keepends=True)
        return self._with(new, self.row, self.row + 1)

    def without_block(self) -> "EditedText":
        """The text without all that is indented around the line, and what opens and closes it."""
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
    """A text in which the lines `new` replaced `num_old` others.

    `tree` is None if the text cannot be parsed in time.
    """

    tree: Tree | None
    rows: tuple[bytes, ...]
    language_id: str
    new: range
    num_old: int

    @property
    def num_here(self) -> int:
        """How many faults stand in the new lines."""
        return sum(fault.row in self.new for fault in self.faults)

    @property
    def faults_around(self) -> frozenset[Fault]:
        """Those in other lines, at the rows that they had before."""
        shift = self.num_old - len(self.new)
        return frozenset(
            fault._replace(row=fault.row + shift) if fault.row >= self.new.stop else fault
            for fault in self.faults
            if fault.row not in self.new
        )

    @cached_property
    def faults(self) -> tuple[Fault, ...]:
        """What the grammar could not read; of very many the first ones."""
        if self.tree is None:
            return (Fault(self.new.start, 0, "time"),)
        return tuple(islice(_faults(self.tree.root_node), _MOST_FAULTS))

    @cached_property
    def is_python(self) -> bool | None:
        """Whether Python parses the statements at the new lines; None if there are none to parse.

        The grammar takes a header without a body for granted, and arguments in any order.
        """
        statements = self.statements
        if self.language_id != "python" or not statements.strip() or len(statements) > _MOST_PYTHON:
            return None
        return parses_as_python(statements)

    @cached_property
    def statements(self) -> bytes:
        """The outermost statements that the new lines belong to, and the one behind them."""
        root = self.tree.root_node if self.tree is not None else None
        nodes = root.children if root is not None and root.child_count <= _MOST_CHILDREN else []
        first = bisect_left(nodes, self.new.start, key=lambda node: node.end_point.row)
        last = bisect_left(nodes, self.new.stop, key=lambda node: node.start_point.row)
        nodes = nodes[first : last + 1]  # the next one shows whether its indentation still fits
        if not nodes:
            return b""
        return b"".join(self.rows[nodes[0].start_point.row : nodes[-1].end_point.row + 1])


def parses_as_python(source: str | bytes) -> bool:
    """Whether Python's own parser reads it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that mean nothing
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _faults(root: Node) -> Iterator[Fault]:
    """The innermost broken nodes; a tree may be thousands deep, and what is left is one fault."""
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
