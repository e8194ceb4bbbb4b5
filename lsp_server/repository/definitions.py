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
_MOST_CHARS = 800
_MOST_DEFINITIONS = 4_000  # definitions of a file

_JAVASCRIPT = """
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(class_declaration name: (_) @name) @class
(method_definition name: (_) @name) @function
(program (lexical_declaration (variable_declarator name: (identifier) @name)) @value)
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name)) @value))
"""
_TYPESCRIPT = (
    _JAVASCRIPT
    + """
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @class
(enum_declaration name: (_) @name) @class
(type_alias_declaration name: (_) @name) @value
(public_field_definition name: (_) @name) @value
(property_signature name: (_) @name) @value
(method_signature name: (_) @name) @function
(function_signature name: (_) @name) @function
"""
)
_C = """
(function_definition declarator: (_ declarator: (identifier) @name)) @function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @value
(struct_specifier name: (_) @name body: (_)) @class
(enum_specifier name: (_) @name body: (_)) @class
(field_declaration declarator: (_) @name) @value
(type_definition declarator: (type_identifier) @name) @value
(preproc_def name: (_) @name) @value
(preproc_function_def name: (_) @name) @value
"""
_QUERIES = {
    "python": """
        (class_definition name: (_) @name) @class
        (function_definition name: (_) @name) @function
        (module (expression_statement (assignment left: (identifier) @name)) @value)
        (class_definition body: (block
            (expression_statement (assignment left: (identifier) @name)) @value))
        ((assignment left: (attribute object: (identifier) @self attribute: (_) @name)) @value
            (#eq? @self "self"))
        """,
    "javascript": f"{_JAVASCRIPT}(field_definition property: (_) @name) @value",
    "typescript": _TYPESCRIPT,
    "java": """
        (class_declaration name: (_) @name) @class
        (interface_declaration name: (_) @name) @class
        (enum_declaration name: (_) @name) @class
        (record_declaration name: (_) @name) @class
        (method_declaration name: (_) @name) @function
        (constructor_declaration name: (_) @name) @function
        (field_declaration declarator: (_ name: (_) @name)) @value
        """,
    "go": """
        (function_declaration name: (_) @name) @function
        (method_declaration name: (_) @name) @function
        (type_declaration (type_spec name: (_) @name)) @class
        (field_declaration name: (_) @name) @value
        (method_elem name: (_) @name) @function
        (source_file (const_declaration (const_spec name: (_) @name) @value))
        (source_file (var_declaration (var_spec name: (_) @name) @value))
        """,
    "rust": """
        (function_item name: (_) @name) @function
        (function_signature_item name: (_) @name) @function
        (struct_item name: (_) @name) @class
        (enum_item name: (_) @name) @class
        (trait_item name: (_) @name) @class
        (impl_item type: (type_identifier) @name) @class
        (field_declaration name: (_) @name) @value
        (enum_variant name: (_) @name) @value
        (type_item name: (_) @name) @value
        (const_item name: (_) @name) @value
        (macro_definition name: (_) @name) @value
        """,
    "c": _C,
    "cpp": _C
    + """
        (class_specifier name: (_) @name body: (_)) @class
        (function_definition declarator: (_ declarator: (field_identifier) @name)) @function
        """,
}
_PYTHON_HINTS = ("@property", "@classmethod", "@staticmethod", "@dataclass", "@cached_property")


@dataclass(frozen=True, slots=True)
class Definition:
    """A name that a file defines; `text` holds whole lines from `line` on, counted from 0.

    The text of a class is its head with the first line of its docstring. `parent` names the class
    around a definition, or is empty.
    """

    path: str
    name: str
    parent: str
    is_class: bool
    line: int
    text: str


def definitions(text: str, path: str) -> list[Definition] | None:
    """Return the definitions in a file's text, in their order.

    None if parsing would take long, which no code written by a person does.
    """
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
    parser = parser_for(language_id)
    language = parser.language if isinstance(parser, Parser) else None
    patterns = _QUERIES.get(language_id.removesuffix("react"))
    return Query(language, patterns) if language is not None and patterns else None


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
