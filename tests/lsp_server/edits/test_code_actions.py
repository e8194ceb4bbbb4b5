"""The edits that a menu offers."""

import pytest
from lsprotocol import types

from lsp_server.documents.document import Document
from lsp_server.edits.asked_edits import AskedEdit
from lsp_server.edits.code_actions import code_actions

KINDS = types.CodeActionKind
TEXT = "import os\n\ndef total(items):\n    return summ(items)\n"
PROBLEM = types.Diagnostic(
    types.Range(types.Position(3, 11), types.Position(3, 15)), "Undefined name `summ`\n(F821)"
)


def offered(*problems, selection=((2, 0), (4, 0)), only=None, language="python"):
    document = Document(types.TextDocumentItem("file:///a.py", language, 3, TEXT), 1).snapshot
    start, end = (types.Position(*place) for place in selection)
    params = types.CodeActionParams(
        types.TextDocumentIdentifier(document.uri),
        types.Range(start, end),
        types.CodeActionContext(problems, only=only),
    )
    return code_actions(params, document)


def kinds(actions):
    return {one.kind for one in actions}


def test_a_selection_can_be_rewritten_and_an_empty_one_cannot():
    actions = offered()
    assert kinds(actions) == {KINDS.RefactorRewrite}
    assert "Add type hints" in [one.title for one in actions]
    assert offered(selection=((2, 0), (2, 0))) == []


def test_type_hints_are_offered_where_the_language_has_them():
    assert not [one for one in offered(language="go") if "hints" in one.title]


def test_a_diagnostic_can_be_fixed_with_its_line_and_message():
    [fix] = offered(PROBLEM, selection=((3, 0), (3, 0)))
    assert fix.title == "Fix: Undefined name `summ` (F821)"
    assert (fix.kind, fix.diagnostics) == (KINDS.QuickFix, [PROBLEM])
    argument = fix.command.arguments[0]
    assert "`return summ(items)`: Undefined name `summ`" in argument["instruction"]
    assert argument["range"].start.line <= 3 < argument["range"].end.line
    assert argument["version"] == 3


@pytest.mark.parametrize(
    ("only", "found"),
    [
        (["quickfix"], {KINDS.QuickFix}),
        (["refactor"], {KINDS.RefactorRewrite}),
        (["refactor.rewrite", "source"], {KINDS.RefactorRewrite}),
        (["refactor.extract", "refactor.rewrite.more", "quick"], set()),
        ([""], {KINDS.QuickFix, KINDS.RefactorRewrite}),
    ],
)
def test_only_kinds_that_the_client_wants_are_offered(only, found):
    assert kinds(offered(PROBLEM, only=only)) == found


def test_a_long_message_still_makes_an_instruction_that_the_command_takes():
    [fix] = offered(types.Diagnostic(PROBLEM.range, "x" * 10_000), selection=((0, 0), (0, 0)))
    argument = fix.command.arguments[0]
    asked = AskedEdit(argument["uri"], argument["range"], argument["instruction"])
    assert len(asked.instruction) <= 4096
    assert len(fix.title) < 100
