"""Edits that any editor's menu offers, for a selection and for diagnostics."""

from collections.abc import Iterator

from lsprotocol import types

from engine.edits.asked import FIX
from lsp_server.documents.document import Snapshot
from lsp_server.edits.edit_command import EDIT_COMMAND, shortened

_FIX, _REWRITE = types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite
KINDS = (_FIX, _REWRITE)
_PYTHON = ("Add type hints", "Add a docstring", "Handle missing values", "Simplify")
_OTHERS = ("Add a documentation comment", "Handle missing values", "Simplify")
_MOST_FIXES = 3  # diagnostics that a menu offers to fix
_MOST_MESSAGE = 1_000  # characters of a message in an instruction
_AROUND = 3  # lines on each side that a fix may change, as an error's cause is often near


def code_actions(params: types.CodeActionParams, document: Snapshot) -> list[types.CodeAction]:
    """Return the actions of the kinds that the client wants."""
    only = params.context.only
    actions = [*_fixes(params, document), *_rewrites(params, document)]
    return [one for one in actions if only is None or any(_holds(kind, one.kind) for kind in only)]


def _fixes(params: types.CodeActionParams, document: Snapshot) -> Iterator[types.CodeAction]:
    for one in params.context.diagnostics[:_MOST_FIXES]:
        message = " ".join(one.message.split())
        line = document.line(one.range.start.line).strip()
        instruction = f"{FIX} in the line `{line}`: {message}"[:_MOST_MESSAGE]
        start = types.Position(max(0, one.range.start.line - _AROUND), 0)
        end = types.Position(one.range.end.line + _AROUND + 1, 0)
        title = f"Fix: {shortened(message)}"
        yield _action(title, _FIX, document, types.Range(start, end), instruction, [one])


def _rewrites(params: types.CodeActionParams, document: Snapshot) -> Iterator[types.CodeAction]:
    if params.range.start != params.range.end:
        for title in _PYTHON if document.language_id == "python" else _OTHERS:
            yield _action(title, _REWRITE, document, params.range, f"{title}.")


def _action(
    title: str,
    kind: types.CodeActionKind,
    document: Snapshot,
    where: types.Range,
    instruction: str,
    diagnostics: list[types.Diagnostic] | None = None,
) -> types.CodeAction:
    argument = {
        "uri": document.uri,
        "version": document.version,
        "range": where,
        "instruction": instruction,
    }
    command = types.Command(title, EDIT_COMMAND, arguments=[argument])
    return types.CodeAction(title, kind=kind, diagnostics=diagnostics, command=command)


def _holds(wanted: str, kind: str | None) -> bool:
    """Whether a kind is `wanted` or below it: `refactor` holds `refactor.rewrite`."""
    return wanted in ("", kind) or (kind or "").startswith(wanted + ".")
