"""`python -m tests.bench syntax`: whether a file still parses once a suggestion is accepted."""

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lsprotocol import types
from rich.table import Table

from engine.bench.report import figure_table
from engine.errors import ConfigurationError
from lsp_server.cli import command_parser
from lsp_server.cli.terminal import print_figures, tracked
from lsp_server.language_names import language_of_file
from lsp_server.prompt.grammars import parser_for
from lsp_server.prompt.parsed_line import parses_as_python
from lsp_server.settings import Settings
from tests.bench.simulated.foregram_side import ForegramSide, foregram_side, model_variable
from tests.bench.simulated.traces import Trace, load_traces
from tests.support.editor import Editor

_LOOK_S = 1.0  # seconds in which a shown text may become longer
_POLL_S = 0.05
_VERDICTS = ("whole", "broken", "was broken", "silent")


def add_options(parser: argparse.ArgumentParser) -> None:
    options = {
        "file SET.jsonl ...": "replay sets",
        "--count N": "only the first N insertions of each",
        "--model NAME": "the model of the host that is started",
    }
    command_parser.add_options(parser, options | command_parser.JSON)


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    if settings.host_url is not None:
        raise ConfigurationError("bench syntax needs a host of its own: unset FOREGRAM_HOST_URL")
    traces = [one for file in arguments.file for one in load_traces(file, arguments.count)]
    lines = asyncio.run(_asked(traces, settings, model_variable(arguments.model)))
    print_figures(arguments, {"items": lines}, _table(lines))


async def _asked(
    traces: Sequence[Trace], settings: Settings, variables: Mapping[str, str]
) -> list[dict[str, Any]]:
    program, environ = [sys.executable, "-m", "lsp_server"], {**os.environ, **variables}
    async with foregram_side("foregram", program, settings, environ) as side:
        return [await _line(side, trace) for trace in tracked(traces, "items")]


async def _line(side: ForegramSide, trace: Trace) -> dict[str, Any]:
    """Ask after the key before the target, and judge each text that appears in a second."""
    async with side.sitting(trace) as sitting:
        shown = sitting.editor
        shown.type(trace.approach)
        before = shown.text
        texts = [one for items in await _answers(shown) for one in items[:1]]
        reasons = await shown.reasons()
    files = [accepted(before, one) for one in texts]
    return {
        "id": trace.id,
        "language": language_of_file(trace.path),
        "verdict": verdict(trace.path, before, files),
        "shown": str(texts[-1].insert_text) if texts else "",
        "reason": "" if texts or not reasons else reasons[-1],
        "target": trace.target,
    }


async def _answers(shown: Editor) -> list[list[types.InlineCompletionItem]]:
    """Ask, and again whenever the server has more text."""
    news = asyncio.Event()
    shown.on_more_text = lambda _uri, _version: news.set()
    answers, end = [await shown.items()], time.monotonic() + _LOOK_S
    while time.monotonic() < end:
        await asyncio.sleep(_POLL_S)
        if news.is_set():
            news.clear()
            answers.append(await shown.items())
    return answers


def accepted(text: str, item: types.InlineCompletionItem) -> str:
    """Return a document with LF line ends after an item is accepted."""
    there = item.range
    assert there is not None
    start, end = _offset(text, there.start), _offset(text, there.end)
    return text[:start] + str(item.insert_text) + text[end:]


def verdict(path: str, before: str, files: Iterable[str]) -> str:
    """Return what became of the file `before`, of which `files` are what it could become."""
    parses = [_parses(path, one) for one in files]
    if not parses:
        return "silent"
    if all(parses):
        return "whole"
    return "broken" if _parses(path, before) else "was broken"


def _parses(path: str, text: str) -> bool:
    """Whether the grammar reads a file; Python's own parser is stricter and decides for Python."""
    language = language_of_file(path)
    parser = parser_for(language)
    if parser is None:
        raise ConfigurationError(f"{path} is in no language with a grammar")
    is_read = not parser.parse(text.encode()).root_node.has_error
    return is_read and (language != "python" or parses_as_python(text))


def _offset(text: str, position: types.Position) -> int:
    lines = text.split("\n")
    units = lines[position.line].encode("utf-16-le")[: 2 * position.character]
    above = sum(len(line) + 1 for line in lines[: position.line])
    return above + len(units.decode("utf-16-le"))


def _table(lines: Sequence[dict[str, Any]]) -> Table:
    counts: dict[str, Counter[str]] = {}
    for line in lines:
        counts.setdefault(line["language"], Counter())[line["verdict"]] += 1
    caption = "was broken: the file did not parse before, either"
    table = figure_table(["language"], ("items", *_VERDICTS), title="syntax", caption=caption)
    for language, found in counts.items():
        numbers = (str(found[one]) for one in _VERDICTS)
        table.add_row(language, str(found.total()), *numbers)
    return table
