"""Finds the cursor's place in a syntax tree that is updated with each edit."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from tree_sitter import Node, Parser, Point, Tree

from engine.host.protocol import LineSplice, Position
from engine.text.lines import indent_of
from lsp_server.documents.document import Snapshot
from lsp_server.documents.line_buffer import differences
from lsp_server.language_names import comment_signs
from lsp_server.prompt.bounded_parse import (
    MOST_DEPTH,
    edit_rows,
    leaf_before,
    nodes_around,
    parsed_in_stretches,
    parsed_in_time,
)
from lsp_server.prompt.grammars import (
    BLOCK_HEADS,
    CODE_IN_STRINGS,
    COMMENTS,
    LITERALS,
    STRING_ENDS,
    STRINGS,
    parser_for,
)
from lsp_server.prompt.parsed_line import ParsedLine
from lsp_server.prompt.place import (
    Opener,
    Place,
    block_by_text,
    find_opener,
    inside_by_text,
    is_below_colon,
    place_by_text,
    place_in_code,
)

MAX_LINES = 8_000  # Copilot's limit; beyond it, text rules: a broken line may cost a whole parse
MAX_CHARS = 500_000  # the same limit in characters; few source files are larger
MAX_ROW = 20_000  # characters of a line; longer ones are generated
MAX_BRACKETS = 50_000  # opening brackets; 100,000 nested ones crash the parser's process
_PATIENCE_S = 0.005  # seconds to parse after a keystroke; an open quote changes the whole file
_TRIES = 3  # each with twice the patience, before waiting for a pause


class Places:
    """All open documents' trees."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, DocumentSyntax]] = {}  # by URI, with its opening

    def syntax(self, snapshot: Snapshot) -> "DocumentSyntax":
        """Return the tree of a document, which follows its text."""
        opening, syntax = self._known.get(snapshot.uri, (0, None))
        if syntax is None or opening != snapshot.opening:
            syntax = DocumentSyntax(snapshot.language_id)
            self._known[snapshot.uri] = snapshot.opening, syntax
        return syntax

    def catch_up(self, uri: str) -> bool:
        """Parse some text left over while the user typed; return whether there is more."""
        return uri in self._known and self._known[uri][1].catch_up()

    def forget(self, uri: str) -> None:
        """Forget a closed document."""
        self._known.pop(uri, None)


class DocumentSyntax:
    """A document's tree. Text rules decide if it has none: no grammar, long text or slow parse."""

    def __init__(self, language_id: str, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._language_id = language_id
        self._clock = clock
        self._signs = comment_signs(language_id)
        self._lines: tuple[str, ...] = ()  # the text at the last call
        self._rows: list[bytes] = []  # the same in UTF-8, each with a line end
        self._tree: Tree | None = None
        self._reading: Iterator[Tree | None] | None = None  # an unfinished parse of the whole text
        self._num_failed = 0  # parses since the last one in time; if any, edits are yet to parse
        self._is_hopeless = False  # the whole text takes too long

    def place(self, lines: Sequence[str], position: Position) -> Place:
        """Return the place of `position` in `lines`."""
        tree = self._follow(tuple(lines))
        around = nodes_around(tree, _point(lines, position)) if tree else []
        if tree is None or len(around) > MOST_DEPTH:
            return place_by_text(lines, position, self._language_id)
        inside = self._inside(around, lines, position)
        if inside is not None and is_below_colon(lines, position.line):
            return Place.BLANK_LINE
        return inside or place_in_code(lines, position, self._block(tree, around, lines, position))

    def parsed_line(self, lines: Sequence[str], row: int) -> ParsedLine | None:
        """Return the line `row` of `lines` with its tree; None if there is no tree in time."""
        tree, parser = self._follow(tuple(lines)), parser_for(self._language_id)
        if tree is None or parser is None:
            return None
        return ParsedLine(parser, tree.copy(), self._language_id, row, tuple(self._rows))

    def catch_up(self) -> bool:
        """Parse a stretch of the text left over, while the user pauses; return if there is more."""
        parser = parser_for(self._language_id)
        if parser is not None and self._tree is not None and self._num_failed:
            self._reading = self._reading or self._whole(parser, self._tree)
        self._read_on()
        return self._reading is not None

    def _is_fit(self, lines: Sequence[str]) -> bool:
        is_short = len(lines) < MAX_LINES and sum(map(len, lines)) <= MAX_CHARS
        return is_short and not self._is_hopeless and max(map(len, lines), default=0) <= MAX_ROW

    def _follow(self, lines: tuple[str, ...]) -> Tree | None:
        """Return the tree of `lines`; None without a grammar, or if it takes too long."""
        parser = parser_for(self._language_id) if self._is_fit(lines) else None
        if parser is None:
            self._lines, self._rows, self._tree, self._reading = (), [], None, None
            return None
        is_new = self._tree is None and self._reading is None
        is_edited = lines is not self._lines and lines != self._lines
        if is_edited:
            for splice in differences(self._lines, lines):
                self._edit(splice)
            self._lines, self._reading = lines, None
        if self._tree is None:
            self._reading = self._reading or self._whole(parser, None)
            return self._read_on() if is_new else None  # the rest in a pause
        is_current = not is_edited and not self._num_failed
        return self._tree if is_current else self._parse_again(parser, self._tree)

    def _edit(self, splice: LineSplice) -> None:
        """Edit the rows and the tree; unchanged lines of the edit keep their objects."""
        edited = slice(splice.start, splice.end)
        known = dict(zip(self._lines[edited], self._rows[edited], strict=True))
        new = [known.get(line) or _encoded(line) for line in splice.lines]
        if self._tree is not None:
            edit_rows(self._tree, self._rows, splice.start, splice.end, new)
        self._rows[edited] = new

    def _whole(self, parser: Parser, old: Tree | None) -> Iterator[Tree | None]:
        source = b"".join(self._rows)
        if sum(map(source.count, (b"(", b"[", b"{"))) > MAX_BRACKETS:
            return iter(())
        return parsed_in_stretches(Parser(parser.language), self._rows, old)

    def _read_on(self) -> Tree | None:
        """Parse one more stretch; return the tree if that completes it. Hostile text gets none."""
        if self._reading is None:
            return None
        for tree in self._reading:
            if tree is not None:
                self._tree, self._reading, self._num_failed = tree, None, 0
            return tree
        self._tree, self._reading, self._is_hopeless = None, None, True
        return None

    def _parse_again(self, parser: Parser, old: Tree) -> Tree | None:
        """Parse after edits. If that takes too long, keep the old tree to parse from later."""
        if self._num_failed >= _TRIES:
            return None
        patience_s = _PATIENCE_S * 2**self._num_failed
        tree = parsed_in_time(parser, self._rows, old, patience_s, self._clock)
        if tree is None:
            self._num_failed += 1
            return None
        self._tree, self._num_failed = tree, 0
        return tree

    def _inside(
        self, around: Sequence[Node], lines: Sequence[str], position: Position
    ) -> Place | None:
        cursor = _point(lines, position)
        for node in around:
            if node.type in CODE_IN_STRINGS and node.start_point < cursor < node.end_point:
                return None
            if node.type in COMMENTS and self._in_comment(node, cursor):
                return Place.COMMENT
            if node.type in STRINGS and self._in_string(node, cursor):
                return Place.STRING
            if node.has_error and node.start_point.row == cursor.row:
                # The grammar has failed here, as it sees no string in an open quote.
                return inside_by_text(lines, position, self._language_id)
        return None

    def _in_comment(self, node: Node, cursor: Point) -> bool:
        start, end = node.start_point, node.end_point
        if not self._rows[start.row][start.column :].startswith(b"/*"):
            # Some grammars include the line end in the comment.
            return start.row == cursor.row and start < cursor
        is_closed = self._rows[end.row][: end.column].endswith(b"*/")
        return start < cursor and (cursor < end or not is_closed)

    def _in_string(self, node: Node, cursor: Point) -> bool:
        start, end = node.start_point, node.end_point
        if cursor < end:
            return start < cursor
        return not self._rows[end.row][: end.column].endswith(STRING_ENDS)

    def _block(
        self, tree: Tree, around: Sequence[Node], lines: Sequence[str], position: Position
    ) -> tuple[str, int] | None:
        opener = find_opener(lines, position, self._signs)
        if opener is None:
            return _docstring_block(around, lines)
        after = Position(opener.row, opener.column + 1)
        leaf = leaf_before(tree, _point(lines, after))
        parent = None if leaf is None else leaf.parent
        if leaf is None or parent is None or leaf.is_error or parent.is_error:
            return block_by_text(lines, opener)
        if not _opens_block(opener, leaf, parent):
            return None
        # The head of a statement may span lines, and its body is a node of its own.
        head = parent if opener.token == ":" else parent.parent
        row = opener.row if head is None or head.parent is None else head.start_point.row
        return opener.token, indent_of(lines[row])


def _opens_block(opener: Opener, leaf: Node, parent: Node) -> bool:
    if leaf.type != opener.token:
        return False
    return parent.type.endswith(BLOCK_HEADS) if leaf.type == ":" else parent.type not in LITERALS


def _docstring_block(around: Sequence[Node], lines: Sequence[str]) -> tuple[str, int] | None:
    """Return a Python block that counts as empty, with only the string at the cursor."""
    blocks = ((node, above) for node, above in pairwise(around) if node.type == "block")
    block, statement = next(blocks, (None, None))
    if block is None or statement is None or around[0].type != "string_end":
        return None
    is_alone = block.named_child_count == 1 and block.end_point == around[0].end_point
    return (":", indent_of(lines[statement.start_point.row])) if is_alone else None


def _point(lines: Sequence[str], position: Position) -> Point:
    before = lines[position.line][: position.character]
    return Point(position.line, len(before.encode("utf-8", "replace")))


def _encoded(line: str) -> bytes:
    # Editors can send unpaired surrogates, which UTF-8 cannot encode.
    return line.encode("utf-8", "replace") + b"\n"
