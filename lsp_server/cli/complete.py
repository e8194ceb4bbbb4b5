"""`foregram complete`: complete at a cursor in a file. It imports no torch."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from types import FrameType

from lsprotocol import types
from msgspec import structs
from rich.console import Console

from engine.completer import ServedEngine
from engine.errors import InputError
from engine.host.protocol import Position
from engine.memory import peak_resident_bytes
from engine.request import Buffer, CompletionRequest, Done, FinishReason
from engine.text.lines import last_line
from lsp_server.cli.completion_report import (
    CompletionReport,
    print_json,
    print_plain,
    print_view,
)
from lsp_server.cli.engine_arguments import decoding, load_engine
from lsp_server.cli.messages import INTERRUPTED, note
from lsp_server.cli.source_file import Location, SourceFile
from lsp_server.cli.terminal import ProgressBars
from lsp_server.completion.plan import SILENCES, Plan
from lsp_server.completion.postprocess import process
from lsp_server.completion.suggestions import Suggestion
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Document
from lsp_server.privacy.hidden_files import HiddenFiles
from lsp_server.privacy.permissions import Permissions
from lsp_server.privacy.secret_texts import SecretLines
from lsp_server.prompt.syntax import Places
from lsp_server.reasons import TRIED_AGAIN, Reason
from lsp_server.settings import Settings


def show_completion(arguments: argparse.Namespace, settings: Settings) -> int:
    """Complete at a cursor in a file and show it. Raises ForegramError."""
    location = Location.parse(arguments.where)
    source = SourceFile.read(location.path)
    offset = location.offset_in(source.text)
    refuse_hidden(source, settings.allow_secret_files)
    if source.is_damaged:
        note(f"{source.path} is not all UTF-8; other bytes were replaced")
    plan, wanted, folder = _plan(source, offset, settings), decoding(arguments), arguments.given_in
    request = replace(
        wanted,
        prefix=source.text[:offset],
        suffix=source.text[offset:],
        path=named(source.path, folder),
        open_buffers=open_buffers(arguments.open, source.path, settings.allow_secret_files, folder),
        stop=structs.replace(
            wanted.stop,
            single_line=plan.stop.single_line,
            max_tokens=min(plan.stop.max_tokens, wanted.stop.max_tokens),
            min_confidence=max(plan.stop.min_confidence, wanted.stop.min_confidence),
        ),
    )
    with closing(load_shown(arguments, settings)) as engine:
        shown = partial(process, judge=plan.judge)
        report = complete(engine, request, source, shown)
        if arguments.json:
            print_json(report)
        elif sys.stdout.isatty():
            print_view(report, request.prefix, request.suffix, Console())
        else:
            print_plain(report)
    return INTERRUPTED if report.result.finish_reason is FinishReason.CANCELLED else 0


def _plan(source: SourceFile, offset: int, settings: Settings) -> Plan:
    """Return the rules for ending and showing a text, as for an editor's explicit request."""
    item = types.TextDocumentItem(source.path.absolute().as_uri(), "", 1, source.text)
    snapshot = Document(item, 1).snapshot
    head = source.text[:offset]
    position = Position(head.count("\n"), len(last_line(head)))
    is_guess = Permissions([], settings).silence(snapshot) is not None
    anchor = replace(Anchor.of(snapshot, position), is_invoked=not is_guess, is_guess=is_guess)
    return Plan.at(anchor, Places(), settings)


def named(path: Path, folder: Path) -> str:
    """Return the path that the model reads: no more of it than the user has written."""
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def load_shown(arguments: argparse.Namespace, settings: Settings) -> ServedEngine:
    """Load the engine, and tell a person who waits. Raises ForegramError."""
    if sys.stderr.isatty():  # somebody is waiting, and torch alone may take half a minute
        is_first = not (settings.cache_folder / "models").exists()
        note("loading the model" + ("; the first time takes a few minutes" if is_first else ""))
    return load_engine(arguments, settings, ProgressBars())


def refuse_hidden(source: SourceFile, allowed: Sequence[str]) -> None:
    """Raise InputError for a file that must be neither completed nor sent."""
    path = source.path.absolute()
    root = next((up for up in path.parents if (up / ".foregramignore").exists()), None)
    files = HiddenFiles([root] if root else [], allowed=allowed)
    if files.allows(path):
        return
    if reason := files.reason(path):
        why = reason.sentence
    elif (secret := SecretLines().follow(source.text.split("\n"))) is None:
        return
    elif secret.reason is Reason.LINE_TOO_LONG:
        why = f"line {secret.row + 1} is too long to be checked for secrets"
    else:
        why = f"{secret.reason.sentence} ({secret.sentence})"
    names = ",".join(dict.fromkeys((path.name, path.resolve().name)))  # of a link, both count
    raise InputError(
        f"{source.path}: {why}; to allow it, name it in the setting "
        f"allow_secret_files (FOREGRAM_ALLOW_SECRET_FILES={names})"
    )


def open_buffers(
    paths: Iterable[Path], edited: Path, allowed: Sequence[str], given_in: Path
) -> tuple[Buffer, ...]:
    """Read the other open files, each once, and not the edited one again."""
    seen = {edited.resolve()}
    buffers = []
    for path in paths:
        if path.resolve() not in seen:
            seen.add(path.resolve())
            source = SourceFile.read(path)
            refuse_hidden(source, allowed)
            buffers.append(Buffer(named(path, given_in), source.text))
    return tuple(buffers)


def complete(
    engine: ServedEngine,
    request: CompletionRequest,
    source: SourceFile,
    shown: Callable[[str], Suggestion | Reason] = Suggestion,
) -> CompletionReport:
    """Run `request`; `shown` picks what to show of its text. Ctrl-C ends it within a step."""
    with _interrupt_as_flag() as interrupted:
        result = engine.complete(request, cancelled=interrupted)
        said = _said(result, shown)
        if said in TRIED_AGAIN and request.edit is None:
            request = replace(request, sampling=request.sampling.another)
            result = engine.complete(request, cancelled=interrupted)
            said = _said(result, shown)
    reason, made = (said, Suggestion("")) if isinstance(said, Reason) else (None, said)
    return CompletionReport(
        text=made.text.replace("\n", source.line_end),
        replaced=made.replaced_chars_after_cursor,
        reason=reason,
        result=result,
        engine=engine.info,
        peak_memory_mb=peak_resident_bytes() / 2**20,
    )


def _said(result: Done, shown: Callable[[str], Suggestion | Reason]) -> Suggestion | Reason:
    if not result.text:
        return SILENCES.get(result.finish_reason, Suggestion(""))
    return shown(result.text)


@contextmanager
def _interrupt_as_flag() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed; a second one interrupts as usual."""
    interrupted, previous = Event(), signal.getsignal(signal.SIGINT)

    def note(_signal: int, _frame: FrameType | None) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, previous)

    if previous is not signal.SIG_IGN:  # under nohup, Ctrl-C is meant for other programs
        signal.signal(signal.SIGINT, note)
    try:
        yield interrupted.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
