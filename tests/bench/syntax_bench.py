"""`python -m tests.bench syntax`: whether suggestions inside lines leave code whole, and stay right."""

import argparse
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table

from engine import CompletionRequest, StopRules
from engine.completer import ServedEngine
from engine.errors import ConfigurationError
from lsp_server.cli.command_parser import add_json
from lsp_server.cli.engine_arguments import add_model
from lsp_server.cli.engine_loading import load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.postprocess import process, trimmed
from lsp_server.completion.suggestions import Suggestion
from lsp_server.completion.syntax_judge import judge_of
from lsp_server.prompt.place import BOUNDS, scope_at
from lsp_server.prompt.syntax import DocumentSyntax
from lsp_server.reasons import Reason
from lsp_server.settings import Settings
from tests.bench.code_places import CodePlace, is_broken, mid_line_places
from tests.bench.options import add_positions


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the command line takes."""
    parser.add_argument("paths", metavar="PATH", type=Path, nargs="+", help="files and folders")
    add_positions(parser)
    add_model(parser)
    add_json(parser)


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    """Count the suggestions inside lines of real files that leave code broken."""
    places = mid_line_places(arguments.paths, arguments.count, arguments.seed)
    if not places:
        raise ConfigurationError("no file among these has a grammar and a call, list or signature")
    with closing(load_engine(arguments, settings, ProgressBars())) as engine:
        figures = measure_syntax(engine, tracked(places, "places"), settings.min_confidence)
    print_figures(arguments, asdict(figures), figures.table())


@dataclass(slots=True)
class Tally:
    """Counts of suggestions: all, those that restore the file, and those that break it."""

    shown: int = 0
    right: int = 0
    broken: int = 0

    def count(self, place: CodePlace, made: Suggestion | Reason) -> None:
        """Add one suggestion."""
        if isinstance(made, Reason):
            return
        text = place.with_text(made.text, made.replaced_chars_after_cursor)
        whole = place.with_text(place.truth, 0)
        self.shown += 1
        self.right += "".join(text.split()) == "".join(whole.split())
        self.broken += is_broken(text, place.language_id)


@dataclass(slots=True)
class SyntaxFigures:
    """The same answers of the model, only trimmed, and as they are shown."""

    num_places: int = 0
    trimmed: Tally = field(default_factory=Tally)
    shown: Tally = field(default_factory=Tally)

    def table(self) -> Table:
        """The counts, and their shares."""
        table = Table("", "shown", "right", "leave the file broken")
        for name, tally in (("trimmed", self.trimmed), ("judged", self.shown)):
            share = f"{tally.broken} ({tally.broken / max(tally.shown, 1):.1%})"
            table.add_row(name, str(tally.shown), str(tally.right), share)
        table.caption = f"{self.num_places} places inside calls, lists and signatures"
        return table


def measure_syntax(
    engine: ServedEngine, places: Iterable[CodePlace], min_confidence: float
) -> SyntaxFigures:
    """Complete at each place as for a typing user, greedily."""
    figures = SyntaxFigures()
    for place in places:
        _complete(engine, place, min_confidence, figures)
        figures.num_places += 1
    return figures


def _complete(
    engine: ServedEngine, place: CodePlace, min_confidence: float, figures: SyntaxFigures
) -> None:
    lines, position = place.lines, place.position
    syntax = DocumentSyntax(place.language_id)
    kind = syntax.place(lines, position)
    line = syntax.parsed_line(lines, position.line)
    scope = scope_at(kind)
    context = CursorContext.of(lines, position, scope=scope, language_id=place.language_id)
    bounds = BOUNDS[scope]
    result = engine.complete(
        CompletionRequest(
            prefix=place.prefix,
            suffix=place.suffix,
            path=place.file,
            stop=StopRules(
                bounds.max_tokens, single_line=bounds.single_line, min_confidence=min_confidence
            ),
        ),
        on_chunk=lambda _: None,
        cancelled=lambda: False,
    )
    figures.trimmed.count(place, trimmed(result.text, context))
    judge = judge_of(line, context, context.before)
    figures.shown.count(place, process(result.text, context, judge))
