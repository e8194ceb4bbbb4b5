"""The benchmarks of developers: their command line."""

import re
from pkgutil import resolve_name

import pytest

from tests.bench.__main__ import _BENCHMARKS, build_parser

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
