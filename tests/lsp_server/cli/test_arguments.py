"""The command line's words, and that the README of its folder knows them."""

import argparse
import re
import shlex
from pathlib import Path
from pkgutil import resolve_name

import msgspec
import pytest
from msgspec import inspect

import engine.commit
from engine import VERSION
from engine.config import PRESETS
from lsp_server.cli.arguments import build_parser
from lsp_server.setting_layers import expected
from lsp_server.settings import Settings, variable_of

ROOT = Path(__file__).parents[3]
FOLDERS = {
    "cache_folder": "`~/.cache/foregram`",
    "runtime_folder": "`$XDG_RUNTIME_DIR/foregram`",
}
README = (ROOT / "lsp_server/README.md").read_text()


def commands_of(parser):
    parser.add_now()
    actions = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return {name: one for action in actions for name, one in action.choices.items()}


def options_of(*commands):
    parser = build_parser()
    for command in commands:
        parser = commands_of(parser)[command]
        parser.add_now()
    return {word for action in parser._actions for word in action.option_strings} - {"-h", "--help"}


EVERY_PARSER = pytest.mark.parametrize(
    "parser", list(build_parser().with_commands()), ids=lambda parser: parser.prog
)


@EVERY_PARSER
def test_each_help_has_an_example_that_can_be_typed(parser):
    [example] = re.findall(r"^example:\n  foregram (.*)$", parser.format_help(), re.M)
    assert f"foregram {example}".startswith(parser.prog)
    arguments = build_parser().parse_args(shlex.split(example))
    assert not arguments.run or callable(resolve_name(arguments.run))


@EVERY_PARSER
def test_each_option_is_explained(parser):
    unexplained = [action.dest for action in parser._actions if not action.help]
    assert set(unexplained) <= {"command", "benchmark"}, "the list of commands explains itself"


def test_the_readme_lists_every_option_of_complete():
    section = README.split("## Complete")[1].split("\n## ")[0]
    table = "\n".join(re.findall(r"^\|.*", section, re.M))
    assert set(re.findall(r"--[a-z][a-z-]*", table)) == options_of("complete")


def row_of(field):
    """Return the beginning of a setting's row; its meaning follows."""
    values, default = expected(inspect.type_info(field.type)), default_of(field)
    return f"| `{field.name}` | `{variable_of(field.name)}` | {values} | {default} | "


def default_of(field):
    if field.default in (None, "", (), msgspec.NODEFAULT):
        return FOLDERS.get(field.name, "")
    if isinstance(field.default, tuple):
        return ", ".join(f"`{one}`" for one in field.default)
    return f"`{str(field.default).lower()}`"


def test_the_readme_lists_every_setting_and_preset():
    table = README.split("| setting | variable | values | default | meaning |\n")[1]
    begins = map(row_of, msgspec.structs.fields(Settings))
    for row, begin in zip(table.split("\n\n")[0].splitlines()[1:], begins, strict=True):
        assert row.startswith(begin)
        assert re.fullmatch(r"[^|]+ \|", row.removeprefix(begin))
    assert all(f"`{preset}`" in README for preset in PRESETS)


@pytest.mark.parametrize(
    ("known", "printed"), [("0123456789ab", " (0123456789ab)\n"), ("", "\n")], ids=["", "unknown"]
)
def test_the_version_is_printed_with_the_commit_if_it_is_known(known, printed, capsys, monkeypatch):
    monkeypatch.setattr(engine.commit, "commit", lambda: known)
    with pytest.raises(SystemExit) as exit_:
        build_parser().parse_args(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"foregram {VERSION}{printed}"


def test_a_language_server_talks_in_one_place(capsys):
    with pytest.raises(SystemExit) as exit_:
        build_parser().parse_args(["lsp", "--stdio", "--socket", "x.sock"])
    assert exit_.value.code == 2
    assert "--socket: not allowed with argument --stdio" in capsys.readouterr().err


def test_other_files_are_collected_in_order():
    arguments = build_parser().parse_args(["complete", "a:1", "--open", "b", "c", "--open", "d"])
    assert arguments.open == [Path("b"), Path("c"), Path("d")]


@pytest.mark.parametrize("count", ["0", "-1", "many", "9" * 10, "9" * 5_000, "²"])
def test_a_count_is_positive(count, capsys):
    with pytest.raises(SystemExit):
        build_parser().parse_args(["bench", "replay", "set.jsonl", "--count", count])
    assert "--count" in capsys.readouterr().err
