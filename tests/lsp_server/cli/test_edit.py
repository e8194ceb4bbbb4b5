"""`foregram edit` with an engine that needs no model."""

import json
import os
import subprocess

import pytest

from engine.request import EditOutcome, FinishReason
from lsp_server.cli import command_line, edit
from lsp_server.cli.messages import INTERRUPTED
from tests.support.held_engine import HeldEngine

OLD = "a = 1\nb = 2\nc = 3\n"


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """Run the command on a file; return its status, the file and the engine."""

    def run(content, outcome, *options, lines=":2", name="shop.py", **more):
        path, engine = tmp_path / name, HeldEngine(edit=outcome, **more)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        monkeypatch.setattr(edit, "load_shown", lambda arguments, settings: engine)
        words = ["edit", f"{path}{lines}", "Make it 4.", *options]
        return command_line.main(words, folder=str(tmp_path)), path, engine

    return run


def test_a_diff_is_printed_that_git_applies_and_the_file_stays(edited, tmp_path, capsysbinary):
    status, path, engine = edited(OLD, EditOutcome(1, 2, ("b = 4",)))
    said = capsysbinary.readouterr()
    assert (status, path.read_text()) == (0, OLD)
    assert said.out.startswith(b"--- a/shop.py\n+++ b/shop.py\n@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n")
    assert b"tokens a second" in said.err
    request = engine.requests[0]
    assert (request.prefix, request.suffix, request.path) == (
        "a = 1\n",
        "b = 2\nc = 3\n",
        "shop.py",
    )
    assert (request.edit.instruction, request.edit.first, request.edit.end) == ("Make it 4.", 1, 2)
    command = ["git", "apply", "--unsafe-paths", "-"]
    subprocess.run(command, cwd=tmp_path, input=said.out, check=True)
    assert path.read_text() == OLD.replace("2", "4")


@pytest.mark.parametrize(
    ("content", "edit", "after"),
    [
        ("a\r\nb\r\nc\r\n", (1, 2, ("x", "y")), "a\r\nx\r\ny\r\nc\r\n"),
        ("a\r\nb\nc\r\n", (0, 3, ("a", "b", "c", "d")), "a\r\nb\nc\r\nd\r\n"),
        ("a\rb\rc\r", (1, 2, ("x",)), "a\rx\rc\r"),
        ("a\nb", (1, 2, ("x", "y")), "a\nx\ny"),
        ("a\nb", (1, 2, ()), "a"),
        ("a\nb\n", (1, 2, ()), "a\n"),
        ("a\nb", (0, 2, ()), ""),
        ("\ufeffa\nb\n", (0, 1, ("x",)), "\ufeffx\nb\n"),
        ("s = '🦉'\nb\n", (1, 2, ("t = '🦉🦉'",)), "s = '🦉'\nt = '🦉🦉'\n"),
        ("a\nb\n", (2, 2, ("x",)), "a\nb\nx\n"),
        ("", (0, 1, ("x", "y")), "x\ny\n"),
        ("\ufeff", (0, 1, ("x",)), "\ufeffx\n"),
        ("a\r\nb\nc\r\n", (0, 3, ("x", "b", "y")), "x\r\nb\ny\r\n"),
    ],
)
def test_a_written_file_keeps_its_line_ends_and_encoding(edited, content, edit, after):
    status, path, _ = edited(content, EditOutcome(*edit), "--write", lines="")
    assert (status, path.read_bytes().decode()) == (0, after)


def test_bytes_that_are_not_utf8_stay_and_are_not_edited(edited, capsysbinary):
    content, outcome = b"a = '\xe9'\nb = 2\n", EditOutcome(1, 2, ("b = 4",))
    status, path, _ = edited(content, outcome, "--write")
    assert (status, path.read_bytes()) == (0, b"a = '\xe9'\nb = 4\n")
    status, path, _ = edited(content, EditOutcome(0, 1, ("a = 4",)), "--write", lines=":1")
    assert (status, path.read_bytes()) == (2, content)
    assert b"these lines are not UTF-8" in capsysbinary.readouterr().err


def test_no_utf8_comes_into_a_file_of_another_encoding(edited, capsysbinary):
    content, outcome = b"a = '\xe9'\nb = 2\n", EditOutcome(1, 2, ("b = 'é'",))
    status, path, _ = edited(content, outcome, "--write")
    assert (status, path.read_bytes()) == (2, content)
    assert b"or would become so in a file that is not" in capsysbinary.readouterr().err


def test_a_read_only_file_is_refused_before_a_model_is_loaded(edited, monkeypatch, capsys):
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)  # root may write all
    status, path, engine = edited(OLD, EditOutcome(1, 2, ("b = 4",)), "--write")
    assert (status, path.read_text(), engine.requests) == (2, OLD, [])
    assert "cannot be written" in capsys.readouterr().err


def test_a_carriage_return_of_the_model_ends_a_line_as_the_files_own_do(edited):
    _, path, _ = edited("a\r\nb\r\n", EditOutcome(1, 2, ("x\ry",)), "--write")
    assert path.read_bytes() == b"a\r\nx\r\ny\r\n"


def test_other_lines_than_those_asked_about_never_change(edited, capsys):
    status, path, _ = edited(OLD, EditOutcome(0, 2, ("x",)), "--write")
    assert (status, path.read_text()) == (1, OLD)
    assert "changes other lines" in capsys.readouterr().err


def test_a_written_file_keeps_its_mode_and_its_link(edited, tmp_path):
    real = tmp_path / "real.py"
    real.write_text(OLD)
    real.chmod(0o750)
    (tmp_path / "shop.py").symlink_to(real)
    _, path, _ = edited(OLD, EditOutcome(1, 2, ("b = 4",)), "--write")
    assert path.is_symlink()
    assert real.read_text() == OLD.replace("2", "4")
    assert real.stat().st_mode & 0o777 == 0o750


def test_a_written_file_keeps_its_other_names(edited, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(OLD)
    (tmp_path / "shop.py").hardlink_to(other)
    edited(OLD, EditOutcome(1, 2, ()), "--write")
    assert other.read_text() == "a = 1\nc = 3\n"


def test_a_file_with_the_longest_name_is_written(edited):
    _, path, _ = edited(OLD, EditOutcome(1, 2, ("b = 4",)), "--write", name="é" * 126 + ".py")
    assert path.read_text() == OLD.replace("2", "4")


def test_a_file_that_changed_meanwhile_is_not_written(edited, tmp_path, capsys):
    def type_on(_):
        (tmp_path / "shop.py").write_text("new\n")

    outcome = EditOutcome(1, 2, ("b = 4",))
    status, path, _ = edited(OLD, outcome, "--write", before_word=type_on)
    assert (status, path.read_text()) == (2, "new\n")
    assert "changed meanwhile, so it is not written" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["shop.py"]


def test_json_has_the_diff_and_the_figures(edited, capsys):
    edited(OLD, EditOutcome(1, 2, ("b = 4",)), "--json")
    answer = json.loads(capsys.readouterr().out)
    assert "+b = 4\n" in answer["diff"]
    assert (answer["tokens"], answer["steps"], answer["refusal"]) == (3, 3, "")


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        (EditOutcome(refusal="token_limit"), "ask about fewer lines"),
        (EditOutcome(1, 2, ("b = 2",)), "would change nothing"),
        (EditOutcome(refusal="odd"), "the model made no edit (odd)"),
    ],
)
def test_a_refused_answer_is_a_sentence(edited, capsys, outcome, sentence):
    status, path, _ = edited(OLD, outcome, "--write")
    said = capsys.readouterr()
    assert (status, said.out, path.read_text()) == (1, "", OLD)
    assert sentence in said.err


@pytest.mark.parametrize(
    ("lines", "first", "end"), [("", 0, 3), (":2", 1, 2), (":1-3", 0, 3), (":3-3", 2, 3)]
)
def test_lines_are_counted_from_1_and_the_last_belongs(edited, lines, first, end):
    _, _, engine = edited(OLD, EditOutcome(refusal="token_limit"), lines=lines)
    assert (engine.requests[0].edit.first, engine.requests[0].edit.end) == (first, end)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [(":0", "names no lines"), (":3-2", "names no lines"), (":2-4", "there is no line 4")],
)
def test_lines_that_are_not_there_are_a_sentence(edited, capsys, lines, sentence):
    status, _, engine = edited(OLD, None, lines=lines)
    assert (status, engine.requests) == (2, [])
    assert sentence in capsys.readouterr().err


def test_too_many_lines_are_refused_before_a_model_is_loaded(edited, capsys):
    status, _, engine = edited("x\n" * 401, None, lines="")
    assert (status, engine.requests) == (2, [])
    assert "401 lines are too many" in capsys.readouterr().err


def test_a_link_to_a_secret_file_is_edited_once_the_setting_has_the_names_told(
    edited, tmp_path, capsys, monkeypatch
):
    secret = tmp_path / ".env"
    secret.write_text(f"{OLD}PASSWORD=aB3xk9Qw7Lm2Zr5T\n")
    (tmp_path / "link.py").symlink_to(secret)
    outcome = EditOutcome(1, 2, ("b = 4",))
    assert edited(secret.read_text(), outcome, name="link.py")[0] == 2
    names = capsys.readouterr().err.partition("FOREGRAM_ALLOW_SECRET_FILES=")[2]
    monkeypatch.setenv("FOREGRAM_ALLOW_SECRET_FILES", names.strip().removesuffix(")"))
    assert edited(secret.read_text(), outcome, name="link.py")[0] == 0


def test_a_secret_file_is_refused_before_a_model_is_loaded(edited, capsys):
    status, _, engine = edited(OLD, None, name=".env")
    assert (status, engine.requests) == (2, [])
    assert "may hold secrets" in capsys.readouterr().err


def test_ctrl_c_changes_nothing(edited, capsys):
    outcome = EditOutcome(1, 2, ("b = 4",))
    status, path, _ = edited(OLD, outcome, "--write", ending=FinishReason.CANCELLED)
    assert (status, path.read_text()) == (INTERRUPTED, OLD)
    assert capsys.readouterr().out == ""
