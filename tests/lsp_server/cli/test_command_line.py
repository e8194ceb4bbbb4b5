"""The foregram command: exit statuses and sentences, all without a model."""

import errno
import os
import signal
import stat
import sys
from io import BytesIO, TextIOWrapper

import pytest

from engine.errors import CacheError, ModelNotFoundError
from lsp_server.cli import command_line as cli
from lsp_server.cli import complete
from lsp_server.reasons import Reason
from lsp_server.why import EmptyAnswer, Kept
from tests.support.held_engine import HeldEngine


@pytest.fixture
def source_path(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("def f():\n    \n")
    return path


@pytest.fixture
def engine(monkeypatch):
    engine = HeldEngine(("return 1",))
    monkeypatch.setattr(complete, "load_shown", lambda arguments, settings: engine)
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


@pytest.mark.parametrize("words", [[], ["bench"]], ids=["foregram", "bench"])
def test_a_group_of_commands_alone_shows_its_help(words, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(words)
    shown = capsys.readouterr()
    assert (exit_.value.code, shown.err) == (0, "")
    assert "example:" in shown.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["compelte"], "invalid choice: 'compelte' (choose from 'complete', "),
        (["bench", "replai"], "invalid choice: 'replai' (choose from 'replay', "),
        (
            ["complete", "a:1", "--modle=x"],
            "`--modle` is not expected here; did you mean `--model`?",
        ),
        (["stop", "-q"], "`-q` is not expected here ("),
        (["stop", "now"], "`now` is not expected here ("),
        (["complete"], "the following arguments are required: FILE:LINE"),
        (["complete", "a:1", "--layout", "spm"], "argument --layout: invalid choice: 'spm'"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_a_wrong_command_line_is_one_sentence_with_what_may_be_meant(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    said = capsys.readouterr().err
    assert exit_.value.code == 2
    assert said.startswith("foregram: ")
    assert said.count("\n") == 1
    assert sentence in said


def test_the_options_reach_the_engine(source_path, engine):
    other = source_path.with_name("b.py")
    other.write_text("x = 1\n")
    options = "--layout psm --lookahead coding --temperature 0.8 --seed 7 --max-tokens 9 --json"
    words = ["complete", f"{source_path}:2", *options.split(), "--open", str(other)]
    assert cli.main(words) == 0
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
    def load(*_):
        raise error

    return load


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (ModelNotFoundError("no such model"), 3, "no such model"),
        (CacheError("the disk is full"), 4, "the disk is full"),
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 70, "out of memory"),
        (RuntimeError("a tensor has\nno name"), 70, "RuntimeError: a tensor has no name"),
        (OSError(errno.ENOSPC, "No space", "/run/token"), 74, "/run/token cannot be written: No"),
    ],
)
def test_no_failure_shows_a_stack(error, status, sentence, source_path, capsys, monkeypatch):
    monkeypatch.setattr(complete, "load_shown", _raiser(error))
    assert cli.main(["complete", f"{source_path}:1"]) == status
    captured = capsys.readouterr().err
    assert sentence in captured
    assert "Traceback" not in captured


def test_a_host_is_not_ended_by_the_signal_for_its_token_file_before_it_listens(
    tmp_path, monkeypatch
):
    def serve(*_):
        os.kill(os.getpid(), signal.SIGHUP)
        return 0

    monkeypatch.setattr(cli, "resolve_name", lambda _: serve)
    former = signal.getsignal(signal.SIGHUP)
    try:
        assert cli.main(["serve", "--token-file", str(tmp_path / "tokens")]) == 0
    finally:
        signal.signal(signal.SIGHUP, former)


def test_a_name_that_the_terminal_cannot_write_ends_no_command(tmp_path, monkeypatch):
    answer = EmptyAnswer(1.0, Reason.PROSE, "file:///名.md", 3)
    Kept((answer,)).write(tmp_path / "run", "one")
    monkeypatch.setenv("FOREGRAM_RUNTIME", str(tmp_path / "run"))
    narrow = TextIOWrapper(BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", narrow)
    assert cli.main(["why"]) == 0
    assert b"?.md:3: " in narrow.buffer.getvalue()


def test_an_unknown_variable_is_an_error(source_path, capsys, monkeypatch):
    monkeypatch.setenv("FOREGRAM_MODLE", "0.5b")
    assert cli.main(["complete", f"{source_path}:1"]) == 2
    assert "FOREGRAM_MODLE" in capsys.readouterr().err


def test_ctrl_c_ends_the_completion_within_a_step_and_keeps_its_text(
    source_path, monkeypatch, capsys
):
    def interrupt(index):
        if index == 1:
            os.kill(os.getpid(), signal.SIGINT)

    engine = HeldEngine(("first", "second"), before_word=interrupt)
    monkeypatch.setattr(complete, "load_shown", lambda arguments, settings: engine)
    assert cli.main(["complete", f"{source_path}:2"]) == 130
    captured = capsys.readouterr()
    assert captured.out == "first"
    assert "cancelled" in captured.err


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            ".env",
            "KEY=1\n",
            ".env: the file may hold secrets, so it is neither completed nor sent; to allow it, name",
        ),
        ("draft.py", "x = 1\n", "draft.py: a .gitignore or .foregramignore excludes the file; to"),
        (
            "a.txt",
            "-----BEGIN PRIVATE KEY-----\n",
            "nor sent (line 1 looks like a private key); to allow it, name it in",
        ),
    ],
)
@pytest.mark.parametrize("is_open", [False, True], ids=["edited", "open"])
def test_a_hidden_file_is_refused_in_one_sentence(
    name, text, sentence, is_open, source_path, engine, capsys
):
    hidden = source_path.with_name(name)
    hidden.write_text(text)
    hidden.with_name(".foregramignore").write_text("draft.py\n")
    where = [f"{source_path}:1", "--open", str(hidden)] if is_open else [f"{hidden}:1"]
    assert cli.main(["complete", *where]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert engine.requests == []


@pytest.mark.parametrize(
    ("is_terminal", "is_first", "said"),
    [
        (True, True, "foregram: loading the model; the first time takes a few minutes\n"),
        (True, False, "foregram: loading the model\n"),
        (False, True, ""),
    ],
)
def test_a_terminal_is_told_of_the_loading_before_it_begins(
    is_terminal, is_first, said, source_path, capsys, monkeypatch
):
    monkeypatch.setenv("FOREGRAM_CACHE", str(source_path.parent))
    if not is_first:
        (source_path.parent / "models").mkdir()
    monkeypatch.setattr(complete, "load_engine", _raiser(CacheError("the disk is full")))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    cli.main(["complete", f"{source_path}:1"])
    assert capsys.readouterr() == ("", f"{said}foregram: the disk is full\n")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("FOREGRAM_CACHE", str(folder))
    return folder


@pytest.mark.parametrize("mode", [None, 0o755, 0o777])
def test_the_cache_folder_is_for_its_user_alone(source_path, engine, cache, mode):
    if mode is not None:
        cache.mkdir()
        cache.chmod(mode)
        (cache / "numba").mkdir()
        (cache / "models").mkdir()
    assert cli.main(["complete", f"{source_path}:1"]) == 0
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert (cache / "models").exists() is (mode is not None)
    # Others may have put code there.
    assert (cache / "numba").exists() is (mode == 0o755)


def test_a_cache_folder_of_another_user_is_refused(source_path, engine, cache, monkeypatch, capsys):
    cache.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: cache.stat().st_uid + 1)
    assert cli.main(["complete", f"{source_path}:1"]) == 4
    assert "belongs to another user; FOREGRAM_CACHE names another" in capsys.readouterr().err


def test_a_folder_of_all_users_is_no_cache_folder_and_stays_theirs(
    source_path, engine, cache, capsys
):
    cache.mkdir()
    cache.chmod(0o1777)
    assert cli.main(["complete", f"{source_path}:1"]) == 4
    assert "is for all users; FOREGRAM_CACHE names another" in capsys.readouterr().err
    assert stat.S_IMODE(cache.stat().st_mode) == 0o1777


def test_a_cache_folder_that_cannot_be_made_is_told_with_what_names_another(
    source_path, engine, monkeypatch, capsys
):
    monkeypatch.setenv("FOREGRAM_CACHE", str(source_path / "cache"))
    assert cli.main(["complete", f"{source_path}:1"]) == 4
    assert "cannot be used: Not a directory; FOREGRAM_CACHE names" in capsys.readouterr().err
