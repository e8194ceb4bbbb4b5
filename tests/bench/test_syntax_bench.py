import pytest
from lsprotocol import types

from tests.bench.syntax_bench import accepted, verdict

GO = "package a\n\nfunc f() {{\n\t{}\n}}\n"


def _item(text, line, start, end):
    there = types.Range(types.Position(line, start), types.Position(line, end))
    return types.InlineCompletionItem(text, range=there)


def test_an_accepted_item_replaces_its_range_in_units_of_the_client():
    text = 'say("\N{SLIGHTLY SMILING FACE}")\nend\n'

    assert accepted(text, _item('hi")', 0, 7, 9)) == 'say("\N{SLIGHTLY SMILING FACE}hi")\nend\n'


@pytest.mark.parametrize(
    ("before", "files", "expected"),
    [
        ("", [], "silent"),
        ("", ["a()"], "whole"),
        ("", ["a()", "a(); b("], "broken"),
        ("if", ["if a"], "was broken"),
    ],
)
def test_a_file_is_whole_if_it_parses_whatever_was_accepted(before, files, expected):
    found = verdict("a.go", GO.format(before), [GO.format(one) for one in files])

    assert found == expected
