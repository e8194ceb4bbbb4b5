"""The command line's words, and that the README knows them."""

import argparse
import re
from pathlib import Path

import pytest

from engine.config import PRESETS
from lsp_server.arguments import build_parser
from lsp_server.settings import settings_table

README = (Path(__file__).parents[2] / "README.md").read_text()


def options_of(*commands):
    parser = build_parser()
    for command in commands:
        [choices] = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        parser = choices.choices[command]
    return {word for action in parser._actions for word in action.option_strings} - {"-h", "--help"}


def test_the_readme_lists_every_option_of_complete():
    section = README.split("## Complete")[1].split("## Measure")[0]
    assert set(re.findall(r"--[a-z][a-z-]*", section)) == options_of("complete")


def test_the_readme_uses_no_option_of_bench_that_does_not_exist():
    known = set().union(
        *(options_of("bench", kind) for kind in ("replay", "fim", "pool", "lsp", "gpu"))
    )
    assert set(re.findall(r"--[a-z][a-z-]*", README.split("## Measure")[1])) <= known


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


@pytest.mark.parametrize("count", ["0", "-1", "many"])
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
