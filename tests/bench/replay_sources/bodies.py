"""Finds in a source file the ends of blocks that a person might write."""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from tree_sitter import Node

from lsp_server.language_names import language_of_file
from lsp_server.prompt.grammars import COMMENTS, parser_for

FEWEST_CHARS, MOST_CHARS = 60, 400  # of a target
_FEWEST_LINES, _MOST_LINES = 3, 15  # of a target
_FEWEST_BEFORE = 200  # bytes of the file before the cursor
_BLOCK_NAMES = """
    statement_block statement_list block compound_statement constructor_body
    switch_case switch_default case_statement switch_block_statement_group
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_FUNCTIONS = ("function", "method", "constructor", "func_literal", "closure", "lambda")
_LIST = "statement_list"  # Go's blocks hold one
_HEADS = ("value", "label", "switch_label")  # of a `case`, before its statements


class Span(NamedTuple):
    """Byte offsets: from a statement's first character to the end of its block's last line."""

    start: int
    end: int


def spans(path: str, text: str, chance: Random) -> Iterator[Span]:
    """Yield at most one span of each block in a function; none of a file that does not parse."""
    parser, source = parser_for(language_of_file(path)), text.encode()
    if parser is None or (root := parser.parse(source).root_node).has_error:
        return
    nodes = [(root, False)]
    while nodes:
        node, is_inside = nodes.pop()
        is_inside = is_inside or any(word in node.type for word in _FUNCTIONS)
        nodes += [(child, is_inside) for child in reversed(node.named_children)]
        if is_inside and node.type in _BLOCKS and (found := list(_ends(node, source))):
            yield chance.choice(found)


def _ends(block: Node, source: bytes) -> Iterator[Span]:
    statements = [one for one in block.named_children if _is_statement(block, one)]
    end = _line_end(source, statements[-1].end_byte) if statements else 0
    for statement in statements:
        start = statement.start_byte
        line_start = source.rfind(b"\n", 0, start) + 1
        num_lines = source.count(b"\n", start, end) + 1
        if (
            start >= _FEWEST_BEFORE
            and not source[line_start:start].strip()
            and FEWEST_CHARS <= end - start <= MOST_CHARS
            and _FEWEST_LINES <= num_lines <= _MOST_LINES
            and end <= block.end_byte
        ):
            yield Span(start, end)


def _is_statement(block: Node, node: Node) -> bool:
    field = next((i for i, child in enumerate(block.children) if child == node), 0)
    name = block.field_name_for_child(field)
    return node.type not in {*COMMENTS, *_HEADS, _LIST} and name not in _HEADS


def _line_end(source: bytes, start: int) -> int:
    """End of the line at `start`, without white space; a node may end with its line's end."""
    start = len(source[:start].rstrip())
    end = source.find(b"\n", start)
    end = len(source) if end < 0 else end
    return start + len(source[start:end].rstrip())
