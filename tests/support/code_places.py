"""Cursors in the files of `tests/data/places` and elsewhere, and suggestions for answers there."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

from tree_sitter import Node

from engine.host.protocol import Position
from engine.text.brackets import balance
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.judge import LineJudge
from lsp_server.completion.postprocess import process
from lsp_server.completion.suggestions import Suggestion
from lsp_server.completion.syntax_judge import judge_of
from lsp_server.prompt.grammars import parser_for
from lsp_server.prompt.parsed_line import parses_as_python
from lsp_server.prompt.place import Scope
from lsp_server.prompt.syntax import DocumentSyntax
from lsp_server.reasons import Reason
from lsp_server.repository.source_text import language_of

ROOT = Path(__file__).parents[2]
_MOST_CHARS = 160  # characters of the text cut out
_CLOSERS = ")]}\"'`"


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
    def rest(self) -> str:
        """The text behind the cursor in its line."""
        return self.suffix.partition("\n")[0]

    @property
    def position(self) -> Position:
        return Position(self.prefix.count("\n"), len(self.prefix.rpartition("\n")[2]))

    def with_text(self, text: str, replaced: int) -> str:
        """Return the file with `text` in place of `replaced` characters behind the cursor."""
        return self.prefix + text + self.suffix[replaced:]

    @property
    def name(self) -> str:
        return f"{self.file}:{self.position.line + 1}:{self.position.character + 1}"

    def answers(self) -> Iterator[str]:
        """Yield what a model may write: the truth, too much or too little of it, and nonsense."""
        truth, rest = self.truth, self.rest
        yield truth
        yield truth + rest  # the rest of the line again
        yield truth + rest.rstrip(";") + ";"
        yield truth + self.suffix[:120]  # and the lines below
        for closers in (")", ");", "])", "})", '"', "'", "`", "}\n}", ")\n", ") {"):
            yield truth + closers
        yield truth.rstrip(_CLOSERS)  # without its closers
        yield truth + " + ("
        yield truth[: len(truth) // 2]
        yield truth + '\n    """Say what'
        yield truth + "\nif ready:"
        yield truth + "\nfor (const one of all) {"
        yield "\n".join([truth, *self.suffix.split("\n")[1:4]])  # a block cut by a limit


def is_broken(text: str, language_id: str) -> bool:
    """Whether the language's grammar, or Python's own parser, rejects the file."""
    parser = parser_for(language_id)
    if parser is None or parser.parse(text.encode()).root_node.has_error:
        return True
    return language_id == "python" and not parses_as_python(text)


def at(text: str, language_id: str = "typescript") -> CodePlace:
    """Return a cursor at the bar."""
    prefix, _, suffix = text.partition("|")
    return CodePlace("", language_id, prefix, "", suffix)


def around(text: str, language_id: str = "python", scope: Scope = Scope.SEVERAL) -> CursorContext:
    """Return the scope near a cursor at the bar."""
    place = at(text, language_id)
    return CursorContext.of(place.lines, place.position, scope=scope, language_id=language_id)


def shown(place: CodePlace, answer: str) -> Suggestion | Reason:
    """Return the suggestion that an answer makes."""
    lines, position = place.lines, place.position
    line = DocumentSyntax(place.language_id).parsed_line(lines, position.line)
    around = CursorContext.of(lines, position, language_id=place.language_id)
    return process(answer, judge_of(line, around, around.before))


def processed(text: str, context: CursorContext) -> Suggestion | Reason:
    """Return the suggestion that a text makes, judged by the cursor's line alone."""
    return process(text, LineJudge(context))


@cache
def code_places(count: int, seed: int = 0) -> tuple[CodePlace, ...]:
    files = sorted((ROOT / "tests/data/places").iterdir())
    return tuple(place for file in files for place in _places(file, count, Random(seed)))  # noqa: S311 - a seed chooses, not a secret


def _places(file: Path, count: int, chance: Random) -> Iterator[CodePlace]:
    text, language_id = file.read_text("utf-8"), language_of(file.name)
    parser = parser_for(language_id)
    assert parser is not None
    leaves = list(_leaves(parser.parse(text.encode()).root_node))
    starts = chance.sample(range(len(leaves) - 1), len(leaves) - 1)
    found = (_cut(text, leaves, start, chance.randrange(1, 12)) for start in starts)
    places = (CodePlace(file.name, language_id, *parts) for parts in found if _is_fit(parts[1]))
    return islice(places, count)


def _leaves(node: Node) -> Iterator[Node]:
    if not node.child_count and node.end_byte > node.start_byte:
        yield node
    for child in node.children:
        yield from _leaves(child)


def _cut(text: str, leaves: list[Node], start: int, length: int) -> tuple[str, str, str]:
    """Cut out a few tokens, or at every fourth place all up to the line's end."""
    source = text.encode()
    first = leaves[start].start_byte
    last = leaves[min(start + length, len(leaves)) - 1].end_byte
    if start % 4 == 0:
        last = source.find(b"\n", first)
    return source[:first].decode(), source[first:last].decode(), source[last:].decode()


def _is_fit(truth: str) -> bool:
    found = balance(truth)
    is_even = not (found.open or found.surplus or found.quote)
    return bool(truth.strip()) and len(truth) <= _MOST_CHARS and is_even
