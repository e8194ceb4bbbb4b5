"""`python -m tests.bench oracle`: what drafting alone wins, and how long a tree takes."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.table import Table

from engine.bench.figures import percentile
from engine.bench.measured import request_for
from engine.bench.report import figure_table
from engine.bench.task_sets import ReplayItem, read_rows
from engine.request import CompletionRequest
from lsp_server.cli import command_parser
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings
from tests.bench.forced_replay import read_tokenizer
from tests.bench.oracle import Oracle, OracleItem, OracleScore
from tests.bench.recorded_edits import recorded_edits

_OPTIONS = {
    "file SET.jsonl": "a replay set, or recorded next edits",
    "--count N": "only the first N lines of the set",
    "--nodes N =64": "tokens drafted in each step; 64 by default",
    "--tokenizer DIR": "a folder with a tokenizer.json; the offline model's by default",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    command_parser.add_options(parser, {**_OPTIONS, **command_parser.JSON})


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    items = load_items(arguments.file, arguments.count)
    tokenizer = read_tokenizer(arguments.tokenizer, settings.cache_folder, ProgressBars())
    scores = Oracle(tokenizer, arguments.nodes).scores(tracked(items, "items"))
    figures = {kind: _figures(score) for kind, score in scores.items()}
    print_figures(arguments, {"nodes": arguments.nodes, "kinds": figures}, _table(figures))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replayed(ReplayItem):
    replaced: str = ""  # by an edit


def load_items(path: Path, count: int | None = None) -> list[OracleItem]:
    """Read the items of the first lines, or of all. Raises InputError for a bad file or line."""
    rows = read_rows(path, lambda row: [*_items_of(row)], "replay item or recorded next edit")
    return [item for row in rows[:count] for item in row]


def _items_of(row: Mapping[str, Any]) -> Iterator[OracleItem]:
    if "recordings" not in row:
        item = msgspec.convert(row, _Replayed)
        request = request_for(item, CompletionRequest("", "", copied=item.replaced))
        yield OracleItem(item.kind, request, item.target)
        return
    for some in recorded_edits(row["recordings"]):
        for one in some:
            request = CompletionRequest(one.prompt, "", is_raw=True, copied=one.copied)
            yield OracleItem(one.kind, request, one.completion)


def _figures(score: OracleScore) -> dict[str, Any]:
    return {
        "items": score.items,
        "tokens": score.tokens,
        "steps": score.steps,
        "tokens_per_step": score.tokens / score.steps,
        "tree_us_p50": percentile(score.draft_us, 50),
        "tree_us_p99": percentile(score.draft_us, 99),
        "accepted_by_source": dict(score.accepted.most_common()),
    }


def _table(figures: Mapping[str, Mapping[str, Any]]) -> Table:
    numbers = ("items", "tokens", "tokens/step", "tree us p50", "p99")
    caption = "--json names the sources"
    table = figure_table(["kind"], numbers, title="drafting alone", caption=caption)
    for kind, one in figures.items():
        times = (f"{one[name]:.0f}" for name in ("tree_us_p50", "tree_us_p99"))
        counts = (str(one[name]) for name in ("items", "tokens"))
        table.add_row(kind, *counts, f"{one['tokens_per_step']:.2f}", *times)
    return table
