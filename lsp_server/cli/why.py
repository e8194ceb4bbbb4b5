"""`foregram why`: the last empty answers of all language servers, and what they mean."""

import argparse
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from engine.model_names import printable
from lsp_server.documents.file_path import possible_paths
from lsp_server.settings import Settings
from lsp_server.why import EmptyAnswer, Kept, notable, shown_name

_MINUTE_S, _HOUR_S = 60.0, 3600.0


def show_why(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the last empty answers, the latest at the end."""
    kept, now, file = Kept.read_all(settings.runtime_folder), time.time(), arguments.file
    answers = latest(kept, arguments.lines, file)
    if arguments.json:
        shown = [answer.shown() for answer in answers]
        sys.stdout.write(msgspec.json.encode(shown).decode() + "\n")
        return 0
    lines = [line_of(answer, now) for answer in answers] or ["no empty answers are known"]
    prompts = [one.prompt for one in kept if one.prompt and _is_about(one.prompt.uri, file)]
    if last := max(prompts, key=lambda one: one.time_s, default=None):
        name, age = shown_name(last.uri), _age(now - last.time_s)
        lines.append(f"the last prompt, for {name} {age}: {last.sentence}")
    elif not answers:
        lines.append("no prompt is known either; `foregram doctor` checks everything")
    # Language servers of other versions may have written the files.
    sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
    return 0


def latest(kept: Iterable[Kept], number: int, file: Path | None = None) -> list[EmptyAnswer]:
    """Return the last notable answers of all servers, the latest at the end."""
    found = [one for each in kept for one in each.answers if _is_about(one.uri, file)]
    return notable(sorted(found, key=lambda one: one.time_s))[-number:]


def line_of(answer: EmptyAnswer, now_s: float) -> str:
    """Return an answer for people."""
    clock = time.strftime("%H:%M:%S", time.localtime(answer.time_s))
    name = shown_name(answer.uri)
    where = name if answer.line is None else f"{name}:{answer.line}"
    help_ = answer.reason.remedy.in_terminal if answer.reason.remedy else ""
    why = f"{where}: {answer.sentence} ({answer.reason})"
    return f"{clock}, {_age(now_s - answer.time_s)}  " + "; ".join(filter(None, (why, help_)))


def _age(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{max(0, int(seconds))} s ago"
    if seconds < _HOUR_S:
        return f"{int(seconds / _MINUTE_S)} min ago"
    return f"{int(seconds / _HOUR_S)} h ago"


def _is_about(uri: str, file: Path | None) -> bool:
    if file is None:
        return True
    with suppress(ValueError, OSError, RuntimeError):  # no file's name; links in a circle
        return any(path.resolve() == file.resolve() for path in possible_paths(uri))
    return False
