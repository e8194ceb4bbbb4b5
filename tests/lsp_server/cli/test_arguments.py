"""The command line's words, and that the README of its folder knows them."""

import argparse
import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

from engine.config import PRESETS
from lsp_server.cli.arguments import build_parser
from tests.support.settings_table import settings_table

ROOT = Path(__file__).parents[3]
README = (ROOT / "lsp_server/README.md").read_text()


def commands_of(parser):
    """The parsers of a parser's commands, by name."""
    parser.add_now()
    actions = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return {name: one for action in actions for name, one in action.choices.items()}


def all_parsers(parser):
    """A parser, and those of its commands and theirs."""
    return [parser, *(one for sub in commands_of(parser).values() for one in all_parsers(sub))]


def options_of(*commands):
    parser = build_parser()
    for command in commands:
        parser = commands_of(parser)[command]
        parser.add_now()
    return {word for action in parser._actions for word in action.option_strings} - {"-h", "--help"}


EVERY_PARSER = pytest.mark.parametrize(
    "parser", all_parsers(build_parser()), ids=lambda parser: parser.prog
)


@EVERY_PARSER
def test_each_help_has_an_example_that_can_be_typed(parser):
    [example] = re.findall(r"^example:\n  foregram (.*)$", parser.format_help(), re.M)
    assert f"foregram {example}".startswith(parser.prog)
    build_parser().parse_args(example.split())


@EVERY_PARSER
def test_each_command_is_a_function_or_a_group(parser):
    run = parser.get_default("run")
    assert callable(resolve_name(run)) if run else commands_of(parser)


@EVERY_PARSER
def test_each_option_is_explained(parser):
    unexplained = [action.dest for action in parser._actions if not action.help]
    assert set(unexplained) <= {"command", "benchmark"}, "the list of commands explains itself"


def test_the_readme_lists_every_option_of_complete():
    section = README.split("## Complete")[1].split("\n## ")[0]
    table = "\n".join(re.findall(r"^\|.*", section, re.M))
    assert set(re.findall(r"--[a-z][a-z-]*", table)) == options_of("complete")


def test_the_readme_lists_every_setting_and_preset():
    assert settings_table() in README
    assert all(f"`{preset}`" in README for preset in PRESETS)


@pytest.mark.parametrize("command", ["serve", "lsp", "status", "stop", "logs", "why", "doctor"])
def test_the_readme_names_every_command(command):
    assert f"foregram {command}" in README


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as exit_:
        build_parser().parse_args(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.startswith("foregram 0.")


def test_other_files_are_collected_in_order():
    arguments = build_parser().parse_args(["complete", "a:1", "--open", "b", "c", "--open", "d"])
    assert arguments.open == [Path("b"), Path("c"), Path("d")]


@pytest.mark.parametrize("count", ["0", "-1", "many", "9" * 10, "9" * 5_000, "²"])
def test_a_count_is_positive(count, capsys):
    with pytest.raises(SystemExit):
        build_parser().parse_args(["bench", "replay", "set.jsonl", "--count", count])
    assert "--count" in capsys.readouterr().err


def test_serve_takes_what_the_editor_may_set():
    given = ["--threads", "2", "--prompt-tokens", "900", "--cache-folder", "c", "--record", "r"]
    arguments = build_parser().parse_args(["serve", *given])
    assert (arguments.threads, arguments.prompt_tokens) == (2, 900)
    assert (arguments.cache_folder, arguments.record) == (Path("c"), Path("r"))


def test_bench_gpu_takes_any_number_of_sets():
    arguments = build_parser().parse_args(["bench", "gpu", "a.jsonl", "b.jsonl", "--dtype", "fp8"])
    assert arguments.sets == [Path("a.jsonl"), Path("b.jsonl")]
    assert (arguments.dtype, arguments.shapes, arguments.quick) == ("fp8", None, False)
    assert build_parser().parse_args(["bench", "gpu"]).sets == []
