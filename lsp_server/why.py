"""`foregram why`: the last empty answers of all language servers, and what they mean."""

import argparse
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from engine.atomic_write import atomic_write
from engine.errors import ForegramError
from engine.host.protocol import Done
from engine.host.runtime import RuntimeFolder
from lsp_server.last_prompt import LastPrompt
from lsp_server.reasons import (
    EmptyAnswer,
    ReasonLog,
    answers_from_json,
    harmless,
    worth_telling,
)
from lsp_server.settings import Settings

_FOLDER = "why"
_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3600.0, 24 * 3600.0


def write_reasons(runtime_folder: Path, client_id: str, reasons: ReasonLog) -> None:
    """Keep a server's last empty answers for `foregram why`; where that cannot be, go without."""
    with suppress(OSError, ForegramError):
        folder = RuntimeFolder.open(runtime_folder).path / _FOLDER  # made private, or checked
        with atomic_write(folder / f"{client_id}.json") as file:
            file.write(reasons.to_json())


def write_last_prompt(runtime_folder: Path, client_id: str, uri: str, done: Done) -> None:
    """Keep what a server's last prompt was made of; where that cannot be, go without."""
    with suppress(OSError, ForegramError):
        folder = RuntimeFolder.open(runtime_folder).path / _FOLDER
        with atomic_write(folder / f"{client_id}.prompt") as file:
            file.write(LastPrompt.of(uri, done).to_json())


def show_why(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the last empty answers, the latest at the end."""
    folder = settings.runtime_folder / _FOLDER
    answers = _read(folder)
    if arguments.file is not None:
        answers = [one for one in answers if _is_about(one.uri, arguments.file)]
    answers, now = worth_telling(answers)[-arguments.lines :], time.time()
    if arguments.json:
        shown = [answer.shown(now) for answer in answers]
        sys.stdout.write(msgspec.json.encode(shown).decode() + "\n")
        return 0
    for answer in answers:
        sys.stdout.write(_line(answer, now) + "\n")
    if not answers:
        sys.stdout.write("no empty answers are known\n")
    if (last := _last_prompt(folder, arguments.file)) is not None:
        age = _age(now - last.time_s)
        sys.stdout.write(f"the last prompt, for {harmless(last.file)} {age}: {last.sentence}\n")
    return 0


def _line(answer: EmptyAnswer, now_s: float) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(answer.time_s))
    # The file was written by a language server, of another version perhaps.
    file = harmless(answer.file)
    place = file if answer.line is None else f"{file}:{answer.line}"
    help_ = answer.reason.remedy.in_terminal if answer.reason.remedy else ""
    why = f"{place}: {answer.sentence} ({answer.reason})"
    return f"{clock}, {_age(now_s - answer.time_s)}  " + "; ".join(filter(None, (why, help_)))


def _age(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{max(0, int(seconds))} s ago"
    if seconds < _HOUR_S:
        return f"{int(seconds / _MINUTE_S)} min ago"
    return f"{int(seconds / _HOUR_S)} h ago"


def _is_about(uri: str, file: Path) -> bool:
    with suppress(ValueError, OSError, RuntimeError):  # no address; links in a circle
        address = urlsplit(uri)
        return bool(address.path) and Path(unquote(address.path)).resolve() == file.resolve()
    return False


def _last_prompt(folder: Path, file: Path | None) -> LastPrompt | None:
    """The latest prompt that a language server had completed; with a file, of that one."""
    found = []
    for path in folder.glob("*.prompt"):
        with suppress(OSError, msgspec.MsgspecError):
            found.append(LastPrompt.from_json(path.read_bytes()))
    found = [one for one in found if file is None or _is_about(one.uri, file)]
    return max(found, key=lambda one: one.time_s, default=None)


def _read(folder: Path) -> list[EmptyAnswer]:
    """All that is kept, in the order of time; what is older than a day is removed."""
    answers: list[EmptyAnswer] = []
    for path in folder.glob("*.*"):
        with suppress(OSError, msgspec.MsgspecError):  # one that is gone or damaged hides no other
            if path.stat().st_mtime < time.time() - _DAY_S:
                path.unlink()
            elif path.suffix == ".json":
                answers += answers_from_json(path.read_bytes())
    return sorted(answers, key=lambda answer: answer.time_s)
