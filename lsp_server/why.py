"""`foregram why`: the last empty answers of all language servers, and what they mean."""

import argparse
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from engine.errors import ForegramError
from engine.host.runtime import RuntimeFolder
from engine.whole_file import whole_file
from lsp_server.reasons import EmptyAnswer, ReasonLog, answers_from_json
from lsp_server.settings import Settings

_FOLDER = "why"
_DAY_S = 24 * 3600.0


def write_reasons(runtime_folder: Path, client_id: str, reasons: ReasonLog) -> None:
    """Keep a server's last empty answers for `foregram why`; where that cannot be, go without."""
    with suppress(OSError, ForegramError):
        folder = RuntimeFolder.open(runtime_folder).path / _FOLDER  # made private, or checked
        with whole_file(folder / f"{client_id}.json") as file:
            file.write(reasons.to_json())


def show_why(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the last empty answers, the latest at the end."""
    answers = _read(settings.runtime_folder / _FOLDER)[-arguments.lines :]
    if arguments.json:
        sys.stdout.write(msgspec.json.encode(answers).decode() + "\n")
        return 0
    for answer in answers:
        clock = time.strftime("%H:%M:%S", time.localtime(answer.time_s))
        sys.stdout.write(f"{clock}  {answer.file}: {answer.sentence} ({answer.reason})\n")
    if not answers:
        sys.stdout.write("no empty answers are known\n")
    return 0


def _read(folder: Path) -> list[EmptyAnswer]:
    """All that is kept, in the order of time; what is older than a day is removed."""
    answers: list[EmptyAnswer] = []
    for path in folder.glob("*.json"):
        with suppress(OSError, msgspec.MsgspecError):  # one that is gone or damaged hides no other
            if path.stat().st_mtime < time.time() - _DAY_S:
                path.unlink()
            else:
                answers += answers_from_json(path.read_bytes())
    return sorted(answers, key=lambda answer: answer.time_s)
