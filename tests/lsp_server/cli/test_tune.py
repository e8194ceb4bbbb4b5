"""`foregram tune`: what it prints, asks and writes. No real model runs."""

import io
import json

import pytest

from engine.bench import tuning
from engine.bench.tuning import Compared, TextChangedError, Tuning, Variant
from lsp_server.cli import command_line, tune
from lsp_server.cli.messages import INTERRUPTED
from tests.support.git_history import insertion_history
from tests.support.replayed import ScriptedEngine, twice_as_fast

CODING = Variant(lookahead="coding")


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Measured(Tuning):
    """Has found `coding` to be twice as fast, unless a test says otherwise."""

    found = CODING
    more: tuple[Compared, ...] = ()
    error: BaseException | None = None

    def __init__(self, _load, items, _seconds, _progress):
        assert len(items) == tuning.NUM_ITEMS
        self.engine, self.best = ScriptedEngine(twice_as_fast), self.found
        coding = Compared("lookahead", CODING, ratios=[2.0] * 12, steps=1, tokens=3)
        self.compared = [coding, *self.more]

    def run(self):
        if self.error is not None:
            raise self.error


@pytest.fixture
def run(tmp_path, monkeypatch):
    insertion_history(tmp_path, tuning.NUM_ITEMS)
    monkeypatch.setattr(tune, "Tuning", Measured)
    monkeypatch.setenv("FOREGRAM_CONFIG", str(tmp_path / "foregram.toml"))
    monkeypatch.setenv("FOREGRAM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "foregram.toml").write_text("# mine\n")
    return lambda *words: command_line.main(["tune", str(tmp_path), *words])


def written(tmp_path):
    return (tmp_path / "foregram.toml").read_text()


def test_with_yes_what_is_better_is_written(run, tmp_path, capsys):
    assert run("--yes") == 0
    assert written(tmp_path) == 'lookahead = "coding"\n# mine\n'
    shown = capsys.readouterr().out
    assert "2.00" in shown
    assert "faster by more than its noise: lookahead = 'coding'" in shown


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("\n", 1)])
def test_a_person_is_asked(answer, status, run, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert run() == status
    assert ("coding" in written(tmp_path)) == (status == 0)


def test_without_a_terminal_nothing_is_written(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert run("--json") == 0
    assert written(tmp_path) == "# mine\n"
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert (answer["better"], answer["is_complete"]) == ({"lookahead": "coding"}, True)
    assert answer["compared"][0]["speed"] == 2.0
    assert "--yes" in err


def test_speeds_over_w_and_n_are_drawn_and_near_ties_told(run, monkeypatch, capsys):
    drawn = Variant(lookahead="3,5,3")
    cells = [Compared("lookahead", drawn, ratios=[0.5], num_changed=1)]
    monkeypatch.setattr(Measured, "more", cells)
    assert run("--yes") == 0
    shown = capsys.readouterr().out
    assert [line.split()[:5] for line in shown.splitlines() if "N = 5" in line] == [
        ["N", "=", "5", "-", "0.50"]
    ]
    assert "lookahead 3,5,3 changed the text of 1 of 2: near ties" in shown


def test_a_row_limit_that_is_faster_is_told_and_not_written(run, tmp_path, monkeypatch, capsys):
    rows = Compared("rows", Variant(rows=16), is_confirmed=True, ratios=[1.5] * 12)
    monkeypatch.setattr(Measured, "found", Variant())
    monkeypatch.setattr(Measured, "more", [rows])
    assert run("--yes") == 0
    assert "steps of at most 16 rows are faster; there is no" in capsys.readouterr().out
    assert written(tmp_path) == "# mine\n"


def test_where_nothing_is_better_it_says_so(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Measured, "found", Variant())
    assert run("--yes") == 0
    assert written(tmp_path) == "# mine\n"
    assert "no setting is faster than the default" in capsys.readouterr().out


def test_a_changed_text_ends_it_after_what_is_known(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Measured, "error", TextChangedError("lookahead 8,8,8 changed the text"))
    assert run("--yes") == TextChangedError.exit_status
    out, err = capsys.readouterr()
    assert "2.00" in out
    assert "lookahead 8,8,8 changed the text" in err
    assert written(tmp_path) == "# mine\n"


def test_interrupted_it_shows_what_is_known_and_writes_nothing(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Measured, "error", KeyboardInterrupt())
    assert run("--yes") == INTERRUPTED
    assert "2.00" in capsys.readouterr().out
    assert written(tmp_path) == "# mine\n"
