"""The benchmarks of developers: their command line, and where the product's names them."""

import re
from pkgutil import resolve_name

import pytest

from lsp_server.cli import command_line as cli
from lsp_server.cli.bench_arguments import DEVELOPERS_ONLY
from tests.bench.__main__ import _BENCHMARKS, build_parser, main

EVERY_NAME = pytest.mark.parametrize("name", _BENCHMARKS)


@EVERY_NAME
def test_each_help_has_an_example_that_can_be_typed(name, capsys):
    with pytest.raises(SystemExit):
        build_parser().parse_args([name, "--help"])
    [example] = re.findall(
        r"^example:\n  python -m tests\.bench (.*)$", capsys.readouterr().out, re.M
    )
    arguments = build_parser().parse_args(example.split())
    assert arguments.benchmark == name
    assert callable(resolve_name(arguments.run))


def test_no_name_shows_the_list(capsys):
    with pytest.raises(SystemExit) as exit_:
        main([])
    shown = capsys.readouterr()
    assert (exit_.value.code, shown.err) == (0, "")
    assert all(re.search(rf"^ +{name}\b", shown.out, re.M) for name in _BENCHMARKS)


@pytest.mark.parametrize("name", DEVELOPERS_ONLY)
def test_the_product_names_the_command_of_a_checkout_in_one_sentence(name, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(["bench", name, "set.jsonl", "--count", "3"])
    said = capsys.readouterr().err
    assert exit_.value.code == 2
    assert said.startswith(f"foregram: there is no benchmark `{name}`; in a checkout, ")
    assert f"`python -m tests.bench {name}`" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("option", ["--compare=llama-cpp", "--llama-server"])
def test_the_replay_of_the_product_names_the_one_that_has_an_option(option, capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", "replay", "set.jsonl", option])
    said = capsys.readouterr().err
    assert f"no option `{option.partition('=')[0]}`; in a checkout, " in said
    assert "`python -m tests.bench replay`" in said


def test_the_product_names_every_benchmark_that_it_has_not():
    assert set(DEVELOPERS_ONLY) == set(_BENCHMARKS) - {"replay"}
