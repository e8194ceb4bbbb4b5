"""What completes our command line in bash, and the manual page. Real terminals: tests/e2e/editors."""

import re
import shutil
import subprocess

import pytest

from lsp_server.cli.arguments import build_parser
from lsp_server.cli.command_line import main

# What bash does upon Tab, without a terminal.
ASK = """
source completions
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_shtab_foregram foregram "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
PARSERS = list(build_parser().with_commands())
EVERY_PARSER = pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)


def printed(what, capsys):
    assert main(["completions", what]) == 0
    return capsys.readouterr().out


@pytest.fixture
def in_bash(tmp_path, capsys):
    (tmp_path / "completions").write_text(printed("bash", capsys))
    (tmp_path / "token.txt").touch()
    (tmp_path / "folder").mkdir()

    def completed(*words):
        command = ["bash", "-c", ASK, "bash", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    return completed


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("foregram comp", ["complete", "completions"]),
        ("foregram serve --ho", ["--host"]),
        ("foregram bench re", ["replay"]),
        ("foregram bench replay --co", ["--count"]),
        ("foregram edit --layout ", []),
        ("foregram complete --layout ", ["line", "psm"]),
        ("foregram models i", ["install"]),
        ("foregram complete tok", ["token.txt"]),
        ("foregram serve --token-file tok", ["token.txt"]),
        ("foregram serve --cache-folder f", ["folder"]),
        ("foregram serve --cache-folder t", []),
    ],
)
def test_bash_completes_commands_options_words_and_files(in_bash, line, completed):
    assert in_bash(*line.split(" ")) == completed


@EVERY_PARSER
def test_bash_completes_every_option(in_bash, parser):
    wanted = {word for action in parser._actions for word in action.option_strings}
    assert wanted <= set(in_bash(*parser.prog.split(), "-"))


@EVERY_PARSER
def test_the_manual_page_explains_every_command_and_option(capsys, parser):
    page = printed("man", capsys)
    heading = f".SS {parser.prog}\n" if parser is not PARSERS[0] else ".SH DESCRIPTION\n"
    part = re.split(r"^\.S[SH] ", page.split(heading)[1], flags=re.M)[0]
    for action in parser._actions:
        for word in action.option_strings:
            typed = re.escape(word.replace("-", r"\-"))  # a plain hyphen may be shown as another
            assert re.search(rf"^\.B .*{typed}\b.*\n\w", part, re.M), word


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man here")
def test_man_shows_the_page_without_a_warning(tmp_path, capsys):
    page = tmp_path / "foregram.1"
    page.write_text(printed("man", capsys))
    command = ["man", "--warnings", "--local-file", page]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    shown = re.sub(r".\x08", "", done.stdout)  # bold letters are typed twice
    assert "foregram bench replay" in shown
    assert "  --max-tokens N" in shown


def test_the_manual_page_is_the_same_from_any_terminal(monkeypatch, capsys):
    pages = set()
    for columns in ("40", "300"):
        monkeypatch.setenv("COLUMNS", columns)
        pages.add(printed("man", capsys))
    assert len(pages) == 1


def test_wrong_settings_do_not_keep_a_shell_from_starting(monkeypatch, capsys):
    monkeypatch.setenv("FOREGRAM_THREADS", "many")
    assert "_shtab_foregram" in printed("bash", capsys)
