"""`foregram why`: the last empty answers of all language servers, and what they mean."""

import argparse
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from engine.model_names import printable
from lsp_server.documents.file_path import possible_paths
from lsp_server.reasons import EmptyAnswer, notable
from lsp_server.settings import Settings
from lsp_server.why import read_last_prompts, read_reasons

_MINUTE_S, _HOUR_S = 60.0, 3600.0


def show_why(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the last empty answers, the latest at the end."""
    answers = read_reasons(settings.runtime_folder)
    answers = [one for one in answers if _is_about(one.uri, arguments.file)]
    answers, now = notable(answers)[-arguments.lines :], time.time()
    if arguments.json:
        shown = [answer.shown() for answer in answers]
        sys.stdout.write(msgspec.json.encode(shown).decode() + "\n")
        return 0
    # The files were written by language servers, of other versions perhaps.
    for answer in answers:
        sys.stdout.write(printable(_line(answer, now)) + "\n")
    if not answers:
        sys.stdout.write("no empty answers are known\n")
    prompts = read_last_prompts(settings.runtime_folder)
    prompts = [one for one in prompts if _is_about(one.uri, arguments.file)]
    if last := max(prompts, key=lambda one: one.time_s, default=None):
        age = _age(now - last.time_s)
        told = f"the last prompt, for {last.file} {age}: {last.sentence}"
        sys.stdout.write(printable(told) + "\n")
    return 0


def _line(answer: EmptyAnswer, now_s: float) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(answer.time_s))
    where = answer.file if answer.line is None else f"{answer.file}:{answer.line}"
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
    """Whether a URI is of this file; where no file is asked for, all are."""
    if file is None:
        return True
    with suppress(ValueError, OSError, RuntimeError):  # no file's name; links in a circle
        return any(path.resolve() == file.resolve() for path in possible_paths(uri))
    return False
