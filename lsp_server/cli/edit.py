"""`foregram edit`: change lines of a file as asked in words. It imports no torch."""

import argparse
import sys
from contextlib import closing

from rich.console import Console
from rich.text import Text

from engine.config import Lookahead, StopRules
from engine.edits.edit_prompt import Refusal
from engine.errors import InputError
from engine.request import CompletionRequest, EditOutcome, EditTask, FinishReason
from lsp_server.cli.changed_file import ChangedFile
from lsp_server.cli.complete import complete, load_shown, named, refuse_hidden
from lsp_server.cli.completion_report import CompletionReport, print_figures
from lsp_server.cli.messages import INTERRUPTED, note, visible
from lsp_server.cli.source_file import LineSpan, SourceFile
from lsp_server.edits.refusals import EditRefusedError
from lsp_server.settings import Settings

_REFUSED = 1  # exit status if the model made no edit
_MOST_CHARS = 4096  # of an instruction, as in an editor
_WHOLE = StopRules(max_tokens=2**20)  # more than any answer has: the engine's own limits hold
_STYLES = {"+": "green", "-": "red", "@": "cyan"}  # by a diff line's first character


def show_edit(arguments: argparse.Namespace, settings: Settings) -> int:
    """Change lines of a file, and show the difference. Raises ForegramError."""
    span = LineSpan.parse(arguments.where)
    source = SourceFile.read(span.path)
    request = _request(arguments, source, span)
    refuse_hidden(source, settings.allow_secret_files)
    with closing(load_shown(arguments, settings)) as engine:
        report = complete(engine, request, source)
    if report.result.finish_reason is FinishReason.CANCELLED:
        return INTERRUPTED
    edit = report.result.edit or EditOutcome(refusal="no_answer")
    changed = ChangedFile.of(source, edit)
    refusal = edit.refusal or (Refusal.NO_CHANGE if changed.before == changed.after else "")
    if refusal:
        return _refused(refusal, report, is_json=arguments.json)
    if arguments.write:
        changed.write()
    _show(changed.diff(request.path), report, arguments)
    return 0


def _request(
    arguments: argparse.Namespace, source: SourceFile, span: LineSpan
) -> CompletionRequest:
    if not 0 < len(arguments.instruction.strip()) <= _MOST_CHARS:
        raise InputError(f"an instruction has 1 to {_MOST_CHARS:,} characters")
    first, end = span.rows_in(source.text)
    above = "".join(f"{line}\n" for line in source.text.split("\n")[:first])
    return CompletionRequest(
        prefix=above,
        suffix=source.text[len(above) :],
        path=named(source.path, arguments.given_in),
        lookahead=Lookahead.parse(arguments.lookahead),
        stop=_WHOLE,
        edit=EditTask(arguments.instruction, first, end),
    )


def _refused(code: str, report: CompletionReport, *, is_json: bool) -> int:
    if is_json:
        print_figures({"diff": "", "refusal": code}, report)
    note(f"{EditRefusedError(code)} ({report.figures})")
    return _REFUSED


def _show(diff: bytes, report: CompletionReport, arguments: argparse.Namespace) -> None:
    text, summary = diff.decode("utf-8", "replace"), report.figures
    if arguments.write:
        summary += f" · {arguments.where} is written"
    if arguments.json:
        print_figures({"diff": text, "refusal": ""}, report)
        return
    if sys.stdout.isatty():
        console = Console()
        for line in text.removesuffix("\n").split("\n"):
            shown = Text(visible(line.rstrip("\r")), style=_STYLES.get(line[:1], ""))
            console.print(shown, soft_wrap=True, highlight=False)
    else:
        sys.stdout.buffer.write(diff)
        sys.stdout.flush()
    note(summary)
