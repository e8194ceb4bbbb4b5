"""`foregram edit`: change lines of a file as asked in words. It imports no torch."""

import argparse
import sys
from contextlib import closing

from rich.console import Console
from rich.text import Text

from engine.config import Lookahead, StopRules
from engine.edits.asked import check_lines
from engine.errors import InputError
from engine.request import MAX_INSTRUCTION_CHARS, CompletionRequest, EditTask, FinishReason
from lsp_server.cli.changed_file import ChangedFile, require_writable
from lsp_server.cli.complete import complete, load_shown, named, refuse_hidden
from lsp_server.cli.completion_report import CompletionReport, print_figures
from lsp_server.cli.messages import INTERRUPTED, note, visible
from lsp_server.cli.source_file import LineSpan, SourceFile
from lsp_server.edits.refusals import EditRefusedError
from lsp_server.edits.text_edit import change_of
from lsp_server.settings import Settings

_REFUSED = 1  # exit status if the model made no edit
_WHOLE = StopRules(max_tokens=2**20)  # more than any answer has: the engine's own limits hold
_STYLES = {"+": "green", "-": "red", "@": "cyan"}  # by a diff line's first character


def show_edit(arguments: argparse.Namespace, settings: Settings) -> int:
    """Change lines of a file, and show the difference. Raises ForegramError."""
    span = LineSpan.parse(arguments.where)
    source = SourceFile.read(span.path)
    lines = source.text.split("\n")
    task = EditTask(_instruction(arguments), *span.rows_in(source.text))
    check_lines(task, len(lines))
    refuse_hidden(source, settings.allow_secret_files)
    if arguments.write:
        require_writable(source.path)
    request = _request(arguments, source, task)
    with closing(load_shown(arguments, settings)) as engine:
        report = complete(engine, request, source)
    if report.result.finish_reason is FinishReason.CANCELLED:
        return INTERRUPTED
    try:
        change = change_of(report.result.edit, task, lines)
    except EditRefusedError as refused:
        return _refused(refused, report, is_json=arguments.json)
    changed = ChangedFile.of(source, change)
    if arguments.write:
        changed.write()
    _show(changed.diff(request.path), report, arguments)
    return 0


def _instruction(arguments: argparse.Namespace) -> str:
    instruction: str = arguments.instruction
    if not instruction.strip() or len(instruction) > MAX_INSTRUCTION_CHARS:
        raise InputError(f"an instruction has 1 to {MAX_INSTRUCTION_CHARS:,} characters")
    return instruction


def _request(
    arguments: argparse.Namespace, source: SourceFile, task: EditTask
) -> CompletionRequest:
    above = "".join(f"{line}\n" for line in source.text.split("\n")[: task.first])
    return CompletionRequest(
        prefix=above,
        suffix=source.text[len(above) :],
        path=named(source.path, arguments.given_in),
        lookahead=Lookahead.parse(arguments.lookahead),
        stop=_WHOLE,
        edit=task,
    )


def _refused(refused: EditRefusedError, report: CompletionReport, *, is_json: bool) -> int:
    if is_json:
        print_figures({"diff": "", "refusal": refused.code}, report)
    note(f"{refused} ({report.figures})")
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
