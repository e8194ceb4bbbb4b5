"""Cursors in real files, with the text that was cut out behind them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from tree_sitter import Node

from engine.host.protocol import Position
from lsp_server.prompt.grammars import parser_for
from lsp_server.prompt.parsed_line import parses_as_python
from lsp_server.repository.source_text import language_of

_CALLS_LISTS_SIGNATURES = [
    "arguments",
    "argument_list",
    "parameters",
    "formal_parameters",
    "parameter_list",
    "list",
    "array",
    "tuple",
    "set",
    "dictionary",
    "object",
    "initializer_list",
    "array_initializer",
    "literal_value",
    "type_arguments",
]
_MOST_BYTES = 100_000  # of a file
_MOST_CHARS = 120  # that are cut out
_MOST_IN_FILE = 3


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A cursor in a file of which `truth` was cut out."""

    file: str
    language_id: str
    prefix: str
    truth: str
    suffix: str

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple((self.prefix + self.suffix).split("\n"))

    @property
    def before(self) -> str:
        """The cursor's line up to it."""
        return self.prefix.rpartition("\n")[2]

    @property
    def rest(self) -> str:
        return self.suffix.partition("\n")[0]

    @property
    def position(self) -> Position:
        return Position(self.prefix.count("\n"), len(self.before))

    def with_text(self, text: str, replaced: int) -> str:
        """The file with `text` in place of so many characters behind the cursor."""
        return self.prefix + text + self.suffix[replaced:]


def is_broken(text: str, language_id: str) -> bool:
    """Whether the language's grammar, or for Python its own parser, cannot read the file."""
    parser = parser_for(language_id)
    if parser is None or parser.parse(text.encode()).root_node.has_error:
        return True
    return language_id == "python" and not parses_as_python(text)


def mid_line_places(paths: Iterable[Path], count: int, seed: int) -> list[CodePlace]:
    """Up to `count` cursors inside calls, lists and signatures, with text behind them.

    `paths` are files, and folders that hold some. Files that cannot be parsed are passed over.
    """
    chance = Random(seed)  # noqa: S311 - it chooses places, not secrets
    files = sorted(set(_files(paths)))
    chance.shuffle(files)
    places = (place for file in files for place in _places_in(file, chance))
    return list(islice(places, count))


def tokens(node: Node) -> Iterator[Node]:
    """The leaves of a tree, in their order."""
    return (one for one in _nodes(node) if not one.child_count and one.end_byte > one.start_byte)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        inside = path.rglob("*") if path.is_dir() else [path]
        for file in inside:
            if language_of(file.name) and not file.name.endswith(".d.ts") and file.is_file():
                yield file


def _places_in(file: Path, chance: Random) -> Iterator[CodePlace]:
    source, language_id = file.read_bytes(), language_of(file.name)
    parser = parser_for(language_id)
    is_fit = len(source) <= _MOST_BYTES and source.isascii() and b"\r" not in source
    if parser is None or not is_fit or is_broken(source.decode(), language_id):
        return
    root = parser.parse(source).root_node
    nodes = [node for node in _nodes(root) if node.type in _CALLS_LISTS_SIGNATURES]
    chance.shuffle(nodes)
    cuts = filter(None, (_cut(list(tokens(node)), source, chance) for node in nodes))
    for start, end in islice(cuts, _MOST_IN_FILE):
        parts = (source[:start], source[start:end], source[end:])
        yield CodePlace(str(file), language_id, *(part.decode() for part in parts))


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _nodes(child)


def _cut(inside: Sequence[Node], source: bytes, chance: Random) -> tuple[int, int] | None:
    """From a token's end, or from within the next one, to an element's end on the same line."""
    if len(inside) < 4:
        return None
    first = chance.randrange(len(inside) - 2)
    start, following = inside[first].end_byte, inside[first + 1]
    if len(following.text or b"") > 3 and chance.random() < 0.5:
        start = following.start_byte + chance.randrange(1, 3)
    ends = [end for end in _element_ends(inside[first + 1 :]) if end > start]
    if not ends:
        return None
    end = chance.choice(ends)
    truth, rest = source[start:end], source[end:].partition(b"\n")[0]
    is_fit = truth.strip() and b"\n" not in truth and len(truth) <= _MOST_CHARS and rest.strip()
    return (start, end) if is_fit else None


def _element_ends(following: Iterable[Node]) -> Iterator[int]:
    """Where elements end, up to the bracket that closes them all."""
    depth = 0
    for token in following:
        if token.type in ("(", "[", "{"):
            depth += 1
        elif token.type in (")", "]", "}"):
            depth -= 1
        if depth < 0 or (depth == 0 and token.type == ","):
            yield token.start_byte
        if depth < 0:
            return
