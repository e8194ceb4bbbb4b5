"""The foregram command: exit statuses and sentences, all without a model."""

import os
import signal
import sys

import pytest

from engine.errors import CacheError
from lsp_server import cli
from tests.support.fake_engine import FakeEngine


@pytest.fixture
def source_path(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("def f():\n    \n")
    return path


@pytest.fixture
def engine(monkeypatch):
    engine = FakeEngine(["return 1"])
    monkeypatch.setattr(cli, "_load_engine", lambda arguments, settings: engine)
    return engine


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["complete", "missing.py:1"], "there is no file missing.py"),
        (["complete", "missing.py"], "names no line"),
        (["complete", "{file}:9"], "3 lines, counted from 1; there is no 9"),
        (["complete", "{file}:1:99"], "there is no 99"),
        (["complete", "{file}:1", "--open", "missing.py"], "there is no file missing.py"),
        (["complete", "{file}:1", "--lookahead", "fastest"], "lookahead 'fastest'"),
        (["complete", "{file}:1", "--lookahead", "0,3,4"], "lookahead 0,3,4"),
        (["complete", "{file}:1", "--max-tokens", "0"], "max_tokens 0"),
        (["complete", "{file}:1", "--temperature", "-1"], "temperature -1"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    arguments, complaint, source_path, capsys, monkeypatch
):
    monkeypatch.chdir(source_path.parent)
    assert cli.main([word.format(file=source_path) for word in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("foregram: ")
    assert captured.err.count("\n") == 1
    assert complaint in captured.err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["complete"],
        ["fly"],
        ["complete", "a:1", "--layout", "spm"],
        ["complete", "--dtype", "x"],
    ],
)
def test_a_command_line_that_makes_no_sense_is_status_2(arguments):
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == 2


def test_the_options_reach_the_engine(source_path, engine):
    other = source_path.with_name("b.py")
    other.write_text("x = 1\n")
    options = [
        "--layout",
        "psm",
        "--lookahead",
        "coding",
        "--temperature",
        "0.8",
        "--seed",
        "7",
        "--max-tokens",
        "9",
        "--json",
        "--open",
    ]
    assert cli.main(["complete", f"{source_path}:2", *options, str(other)]) == 0
    [request] = engine.requests
    assert (request.prefix, request.suffix) == ("def f():\n    ", "\n")
    assert (request.layout, request.stop.max_tokens) == ("psm", 9)
    assert (request.sampling.temperature, request.sampling.seed) == (0.8, 7)
    assert request.lookahead.ngram_size == 8
    assert request.open_buffers[0].text == "x = 1\n"
    assert engine.is_closed


def test_a_damaged_file_is_completed_with_a_note(tmp_path, engine, capsys):
    path = tmp_path / "latin.py"
    path.write_bytes(b"caf\xe9 = 1\n")
    assert cli.main(["complete", f"{path}:1"]) == 0
    assert "not all UTF-8" in capsys.readouterr().err


def _raiser(error):
    def load(arguments, settings):
        raise error

    return load


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (CacheError("the disk is full"), 4, "the disk is full"),
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 70, "out of memory"),
        (RuntimeError("a tensor has\nno name"), 70, "RuntimeError: a tensor has no name"),
    ],
)
def test_no_failure_shows_a_stack(error, status, sentence, source_path, capsys, monkeypatch):
    monkeypatch.setattr(cli, "_load_engine", _raiser(error))
    assert cli.main(["complete", f"{source_path}:1"]) == status
    captured = capsys.readouterr().err
    assert sentence in captured
    assert "Traceback" not in captured


def test_the_stack_is_there_for_who_asks(source_path, capsys, monkeypatch):
    monkeypatch.setenv("FOREGRAM_DEBUG", "1")
    monkeypatch.setattr(cli, "_load_engine", _raiser(RuntimeError("odd")))
    assert cli.main(["complete", f"{source_path}:1"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_unknown_variable_is_an_error(source_path, capsys, monkeypatch):
    monkeypatch.setenv("FOREGRAM_MODLE", "0.5b")
    assert cli.main(["complete", f"{source_path}:1"]) == 2
    assert "FOREGRAM_MODLE" in capsys.readouterr().err


def test_ctrl_c_during_the_completion_is_status_130(source_path, monkeypatch, capsys):
    engine = FakeEngine(["x"], before_chunk=lambda index: os.kill(os.getpid(), signal.SIGINT))
    monkeypatch.setattr(cli, "_load_engine", lambda arguments, settings: engine)
    assert cli.main(["complete", f"{source_path}:1"]) == 130
    assert "cancelled" in capsys.readouterr().err


def test_a_terminal_gets_the_view(source_path, engine, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert cli.main(["complete", f"{source_path}:2"]) == 0
    assert "\x1b[2m    \x1b[0mreturn 1" in capsys.readouterr().out
