"""`foregram complete`: from a cursor in a file to its completion. It knows no torch."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from rich.console import Console

from engine import Buffer, CompletionRequest, FinishReason
from engine.completer import Completer
from engine.errors import InputError
from engine.memory import peak_resident_bytes
from lsp_server.cli.completion_view import CompletionView, PlainText
from lsp_server.cli.engine_arguments import decoding
from lsp_server.cli.report import INTERRUPTED, CompletionReport, JsonObject, Output, note
from lsp_server.cli.source_file import Location, SourceFile
from lsp_server.cli.terminal import ProgressBars
from lsp_server.privacy.hidden_files import HiddenFiles
from lsp_server.privacy.secret_texts import SecretLines
from lsp_server.reasons import Reason
from lsp_server.settings import Settings


def show_completion(arguments: argparse.Namespace, settings: Settings) -> int:
    """Complete at a cursor in a file and show it. Raises ForegramError."""
    location = Location.parse(arguments.where)
    source = SourceFile.read(location.path)
    offset = location.offset_in(source.text)
    refuse_hidden(source, settings.allow_secret_files)
    if source.is_damaged:
        note(f"{source.path} is not all UTF-8; other bytes were replaced")
    wanted = decoding(arguments)
    request = replace(
        wanted,
        prefix=source.text[:offset],
        suffix=source.text[offset:],
        path=_named(source.path, arguments.given_in),
        open_buffers=tuple(
            replace(one, path=_named(Path(one.path), arguments.given_in))
            for one in open_buffers(arguments.open, source.path, settings.allow_secret_files)
        ),
        stop=replace(wanted.stop, block=True),
    )
    output: Output = PlainText(sys.stdout, sys.stderr, source)
    if arguments.json:
        output = JsonObject(sys.stdout)
    elif sys.stdout.isatty():
        output = CompletionView(Console(), source, offset)
    with closing(_load_engine(arguments, settings)) as engine:
        report = complete(engine, request, source, output)
    return INTERRUPTED if report.result.finish_reason is FinishReason.CANCELLED else 0


def _named(path: Path, folder: Path) -> str:
    """What the model reads of a file's name: no more than the user has written."""
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def _load_engine(arguments: argparse.Namespace, settings: Settings) -> Completer:
    if sys.stderr.isatty():  # somebody is waiting, and torch alone may take half a minute
        is_first = not (settings.cache_folder / "models").exists()
        note("loading the model" + ("; the first time takes a few minutes" if is_first else ""))
    from lsp_server.cli.engine_loading import load_engine

    return load_engine(arguments, settings, ProgressBars())


def refuse_hidden(source: SourceFile, allowed: Sequence[str]) -> None:
    """Raise InputError for a file that must be neither completed nor sent."""
    path = source.path.absolute()
    root = next((up for up in path.parents if (up / ".foregramignore").exists()), None)
    files = HiddenFiles([root] if root else [], allowed=allowed)
    if not files.allows(path) and (why := _why_hidden(files, path, source.text)):
        raise InputError(
            f"{source.path}: {why}; to allow it, name it in the setting "
            f"allow_secret_files (FOREGRAM_ALLOW_SECRET_FILES={path.name})"
        )


def _why_hidden(files: HiddenFiles, path: Path, text: str) -> str:
    if reason := files.reason(path):
        return reason.sentence
    secret = SecretLines().follow(text.split("\n"))
    if secret is None:
        return ""
    if secret.reason is Reason.LINE_TOO_LONG:
        return f"line {secret.row + 1} is too long to be checked for secrets"
    return f"{secret.reason.sentence} ({secret.sentence})"


def open_buffers(
    paths: Iterable[Path], edited: Path, allowed: Sequence[str] = ()
) -> tuple[Buffer, ...]:
    """Read the other open files, each once, and not the edited one again."""
    seen = {edited.resolve()}
    buffers = []
    for path in paths:
        if path.resolve() not in seen:
            seen.add(path.resolve())
            source = SourceFile.read(path)
            refuse_hidden(source, allowed)
            buffers.append(Buffer(str(path), source.text))
    return tuple(buffers)


def complete(
    engine: Completer, request: CompletionRequest, source: SourceFile, output: Output
) -> CompletionReport:
    """Run `request` and show it as it grows. Ctrl-C ends it within a step and keeps its text."""
    output.begin()
    with _interrupt_as_flag() as interrupted:
        result = engine.complete(
            request, on_chunk=lambda chunk: output.write(chunk.text), cancelled=interrupted
        )
    report = CompletionReport(
        text=source.with_line_ends(result.text),
        result=result,
        engine=engine.info,
        peak_memory_mb=peak_resident_bytes() / 2**20,
    )
    output.end(report)
    return report


@contextmanager
def _interrupt_as_flag() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed; a second one interrupts as usual."""
    is_interrupted = False

    def note(_signal: int, _frame: FrameType | None) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        signal.signal(signal.SIGINT, previous)

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # nohup: Ctrl-C is for others
        yield lambda: False
        return
    previous = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: is_interrupted
    finally:
        signal.signal(signal.SIGINT, previous)
