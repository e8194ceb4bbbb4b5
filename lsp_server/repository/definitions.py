"""The definitions of a file, found by its syntax: heads of classes and functions, and variables."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice, takewhile

from tree_sitter import Node, Parser, Query, QueryCursor

from lsp_server.prompt.bounded_parse import is_ordinary
from lsp_server.prompt.grammars import parser_for
from lsp_server.repository.source_text import language_of

_PARSE_S = 0.5  # processor seconds to parse any text
_BYTES_PER_S = 2_000_000  # bytes that get one more second; code takes a third of that
_MOST_S = 1.0  # processor seconds to extract a file's definitions
_MOST_LEVELS = 200  # syntax nodes that are looked at above a definition
_MOST_LINES = 14  # lines of a head
_MOST_CHARS = 800  # characters of a head, 57 for each of these lines
_MOST_DEFINITIONS = 4_000  # definitions of a file

_FUNCTIONS = "function_declaration generator_function_declaration method_definition"
_NAMED = {  # the kinds of nodes whose field `name` holds the name, by what they define
    "python": {"class": "class_definition", "function": "function_definition"},
    "javascript": {"class": "class_declaration", "function": _FUNCTIONS},
    "typescript": {
        "class": "class_declaration abstract_class_declaration interface_declaration "
        "enum_declaration",
        "function": f"{_FUNCTIONS} method_signature function_signature",
        "value": "type_alias_declaration public_field_definition property_signature",
    },
    "java": {
        "class": "class_declaration interface_declaration enum_declaration record_declaration",
        "function": "method_declaration constructor_declaration",
    },
    "go": {
        "function": "function_declaration method_declaration method_elem",
        "value": "field_declaration",
    },
    "rust": {
        "class": "struct_item enum_item trait_item",
        "function": "function_item function_signature_item",
        "value": "field_declaration enum_variant type_item const_item macro_definition",
    },
    "c": {"value": "preproc_def preproc_function_def"},
    "cpp": {"value": "preproc_def preproc_function_def"},
}
_CONSTANTS = """
(program (lexical_declaration (variable_declarator name: (identifier) @name)) @value)
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name)) @value))
"""
_C = """
(function_definition declarator: (_ declarator: (identifier) @name)) @function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @value
(struct_specifier name: (_) @name body: (_)) @class
(enum_specifier name: (_) @name body: (_)) @class
(field_declaration declarator: (_) @name) @value
(type_definition declarator: (type_identifier) @name) @value
"""
_QUERIES = {  # all other definitions
    "python": """
        (module (expression_statement (assignment left: (identifier) @name)) @value)
        (class_definition body: (block
            (expression_statement (assignment left: (identifier) @name)) @value))
        ((assignment left: (attribute object: (identifier) @self attribute: (_) @name)) @value
            (#eq? @self "self"))
        """,
    "javascript": f"{_CONSTANTS}(field_definition property: (_) @name) @value",
    "typescript": _CONSTANTS,
    "java": "(field_declaration declarator: (_ name: (_) @name)) @value",
    "go": """
        (type_declaration (type_spec name: (_) @name)) @class
        (source_file (const_declaration (const_spec name: (_) @name) @value))
        (source_file (var_declaration (var_spec name: (_) @name) @value))
        """,
    "rust": "(impl_item type: (type_identifier) @name) @class",
    "c": _C,
    "cpp": f"""{_C}
        (class_specifier name: (_) @name body: (_)) @class
        (function_definition declarator: (_ declarator: (field_identifier) @name)) @function
        """,
}
_PYTHON_HINTS = ("@property", "@classmethod", "@staticmethod", "@dataclass", "@cached_property")


@dataclass(frozen=True, slots=True)
class Definition:
    """A name that a file defines."""

    path: str
    name: str
    parent: str  # the class around it, or empty
    is_class: bool
    line: int  # counted from 0
    text: str  # whole lines from `line` on: a head, with the first line of its docstring


def definitions(text: str, path: str) -> list[Definition] | None:
    """Return the definitions in a file's text, in order; None if parsing would take long."""
    language_id = language_of(path)
    parser, query = parser_for(language_id), _query(language_id)
    if parser is None or query is None:
        return []
    source = text.encode("utf-8", "replace")
    # Processor time, not wall time: the indexer runs at low priority.
    limit_s = _PARSE_S + len(source) / _BYTES_PER_S
    if not is_ordinary(parser, source, limit_s, time.process_time):
        return None
    # Parse it as one piece: tree-sitter never frees what it reads line by line.
    root = parser.parse(source).root_node
    rows = [row + b"\n" for row in source.split(b"\n")]
    return sorted(_in_time(_found(query, root, rows, path)), key=lambda one: one.line)


def _in_time(found: Iterator[Definition]) -> Iterator[Definition]:
    """Yield the definitions that are found in time: in a deeply nested text, each takes long."""
    deadline = time.process_time() + _MOST_S
    return takewhile(lambda _: time.process_time() < deadline, islice(found, _MOST_DEFINITIONS))


@cache
def _query(language_id: str) -> Query | None:
    parser, family = parser_for(language_id), language_id.removesuffix("react")
    if not isinstance(parser, Parser) or parser.language is None or family not in _QUERIES:
        return None
    named = [(kind, node) for kind, nodes in _NAMED[family].items() for node in nodes.split()]
    patterns = (f"({node} name: (_) @name) @{kind}" for kind, node in named)
    return Query(parser.language, "\n".join((*patterns, _QUERIES[family])))


def _found(query: Query, root: Node, rows: list[bytes], path: str) -> Iterator[Definition]:
    matches = [captures for _, captures in QueryCursor(query).matches(root)]
    classes = {
        captures["class"][0].id: _text(captures["name"][0])
        for captures in matches
        if "class" in captures
    }
    seen: set[tuple[str, str]] = set()
    for captures in matches:
        if (one := _definition(captures, classes, rows, path)) is not None:
            if (one.parent, one.name) not in seen or one.is_class:
                yield one
            seen.add((one.parent, one.name))


def _definition(
    captures: Mapping[str, list[Node]], classes: Mapping[int, str], rows: list[bytes], path: str
) -> Definition | None:
    name = captures["name"][0]
    kind = next(kind for kind in ("class", "function", "value") if kind in captures)
    node = captures[kind][0]
    parent = _parent(node, classes, is_own="self" in captures)
    if parent is None:
        return None
    head, closing = _head(node, kind, rows)
    text = b"".join(rows[head.start : head.stop]).decode("utf-8", "replace")
    text = f"{text[:_MOST_CHARS].rstrip()}{closing}\n"
    return Definition(path, _text(name), parent, kind == "class", head.start, text)


def _parent(node: Node, classes: Mapping[int, str], *, is_own: bool) -> str | None:
    """Return the class around a node, "" if there is none, or None for a function's local."""
    above = node.parent
    for _ in range(_MOST_LEVELS):
        if above is None:
            return None if is_own else ""
        if above.id in classes:
            return classes[above.id]
        if above.type.startswith(("function", "method")) and not is_own:
            return None
        above = above.parent
    return None


def _head(node: Node, kind: str, rows: list[bytes]) -> tuple[range, str]:
    """Return the lines of a head with the first line of its docstring, and quotes to close that."""
    first, last = node.start_point.row, node.end_point.row
    body = node.child_by_field_name("body")
    doc = None if body is None else _documentation(body)
    if body is not None and kind != "value":
        last = max(first, body.start_point.row - (body.type == "block" and _is_python(body)))
        if doc is not None and _is_python(body):
            last = doc.start_point.row
    above = rows[first - 1].strip().decode("utf-8", "replace") if first else ""
    first -= above.startswith(_PYTHON_HINTS)
    head = range(first, min(last + 1, first + _MOST_LINES))
    is_cut = doc is not None and doc.start_point.row < head.stop <= doc.end_point.row
    return head, _text(doc)[-3:] if doc is not None and is_cut else ""


def _is_python(body: Node) -> bool:
    """Whether a block begins on a line of its own, behind a colon."""
    before = body.prev_sibling
    is_below = before is not None and before.end_point.row < body.start_point.row
    return is_below and before is not None and before.type in (":", "comment")


def _documentation(body: Node) -> Node | None:
    """Return the string that a block begins with."""
    first: Node | None = body
    while first is not None and first.type in ("block", "expression_statement"):
        first = first.named_child(0) if first.named_child_count else None
    return first if first is not None and first.type == "string" else None


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
