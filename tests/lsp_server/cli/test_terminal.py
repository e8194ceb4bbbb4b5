"""What a person sees of a task on a terminal."""

import io

import pytest
from rich.console import Console

from lsp_server.cli.terminal import ProgressBars, tracked


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


def test_on_a_terminal_a_bar_comes_and_goes():
    out = io.StringIO()
    bars = ProgressBars(Console(file=out, force_terminal=True))
    for task in ("joining", "converting"):
        bars.begin(task, 1000)
        bars.advance(1000)
        bars.end()
    assert "joining" in out.getvalue()
    assert "converting" in out.getvalue()


@pytest.mark.parametrize("is_terminal", [False, True])
def test_tracked_items_are_counted_where_there_is_a_terminal(is_terminal, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    assert list(tracked("abc", "letters")) == ["a", "b", "c"]
    shown = capsys.readouterr().err
    assert ("3/3" in shown) == ("letters" in shown) == is_terminal
    assert is_terminal or not shown
