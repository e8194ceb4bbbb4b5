"""`foregram complete`: from a cursor in a file to its completion. It knows no torch."""

import json
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Protocol, TextIO

from engine import Buffer, CompletionRequest
from engine.completer import Completer
from engine.errors import InputError
from engine.memory import peak_resident_bytes
from lsp_server.cli.report import CompletionReport
from lsp_server.cli.source_file import SourceFile
from lsp_server.privacy.hidden_files import HiddenFiles
from lsp_server.privacy.secret_texts import SecretLines
from lsp_server.reasons import Reason


class Output(Protocol):
    """Where a completion goes while it grows."""

    def begin(self) -> None:
        """The completion starts."""
        ...

    def write(self, text: str) -> None:
        """More of it is final; LF line ends."""
        ...

    def end(self, report: CompletionReport) -> None:
        """It is over."""
        ...


class JsonObject:
    """One JSON object on one line, at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def begin(self) -> None:
        """Wait."""

    def write(self, text: str) -> None:
        """Wait: the report holds the whole text."""

    def end(self, report: CompletionReport) -> None:
        """Print the report."""
        self._out.write(json.dumps(report.as_json()) + "\n")


def refuse_hidden(source: SourceFile, allowed: Sequence[str]) -> None:
    """Raise InputError for a file that must be neither completed nor sent."""
    path = source.path.absolute()
    names = (".git", ".foregramignore")  # in a repository's top folder
    root = next((up for up in path.parents if any((up / name).exists() for name in names)), None)
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
