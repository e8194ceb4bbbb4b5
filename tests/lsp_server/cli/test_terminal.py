"""What a person sees on a terminal."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from engine.request import CompletionRequest
from lsp_server.cli.complete import complete
from lsp_server.cli.completion_report import CONTEXT_LINES, print_view
from lsp_server.cli.source_file import SourceFile
from lsp_server.cli.terminal import ProgressBars, tracked
from tests.support.held_engine import HeldEngine


def test_without_a_terminal_progress_is_one_line_per_task():
    out = io.StringIO()
    bars = ProgressBars(Console(file=out))
    bars.begin("converting the model", 1000)
    bars.advance(500)
    bars.end()
    assert out.getvalue() == "foregram: converting the model\n"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_sentence_that_is_told_stays_as_it_is(is_terminal):
    out = io.StringIO()
    bars = ProgressBars(Console(file=out, force_terminal=is_terminal, width=20))
    bars.tell("weights [b]1.0 GB of 2.0 GB free")
    assert out.getvalue() == "foregram: weights [b]1.0 GB of 2.0 GB free\n"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_tracked_items_are_counted_where_there_is_a_terminal(is_terminal, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    assert list(tracked("abc", "letters")) == ["a", "b", "c"]
    shown = capsys.readouterr().err
    assert ("100%" in shown) == ("letters" in shown) == is_terminal
    assert is_terminal or not shown


DIM, RESET = "\x1b[2m", "\x1b[0m"


def shown(text, offset, chunks, width=20):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="standard", width=width)
    source = SourceFile(Path("a.py"), text)
    request = CompletionRequest(prefix=text[:offset], suffix=text[offset:])
    report = complete(HeldEngine(tuple(chunks)), request, source)
    print_view(report, request.prefix, request.suffix, console)
    return out.getvalue()


def test_the_completion_stands_between_dimmed_neighbours():
    view = shown("before()\n\nafter()\n", 9, ["now()", " # here"])
    assert f"{DIM}before(){RESET}" in view
    assert "now() # here" in view
    assert f"{DIM}after(){RESET}" in view
    assert view.index("before()") < view.index("now()") < view.index("after()")


def test_only_the_nearest_lines_are_shown():
    lines = [f"line{number}" for number in range(100)]
    text = "\n".join(lines)
    view = shown(text, text.index("line50"), ["new\n"])
    assert f"line{50 - CONTEXT_LINES}" in view
    assert f"line{49 - CONTEXT_LINES}" not in view
    assert f"line{50 + CONTEXT_LINES}" in view
    assert f"line{51 + CONTEXT_LINES}" not in view


def test_escape_sequences_are_shown_not_obeyed():
    view = shown("\x1b]0;title\x07", 0, ["\x1b[2Jwiped"])
    assert "\x1b]0" not in view
    assert "\x1b[2J" not in view
    assert "␛[2Jwiped" in view


def test_the_summary_names_cost_model_and_ending():
    view = re.sub(r"\x1b\[[0-9;]*m", "", shown("", 0, ["x = 1"], width=200))
    _, line, _ = view.split("\n")
    for part in (
        "3 tokens in 3 runs of the model",
        "428.6 tokens a second",
        "fake-1b (float32) on cpu",
        "MB of memory",
        "the model ended its text",
    ):
        assert part in line
