"""Why an answer was empty: a code for programs, a sentence for people, and the last of them."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from lsp_server import remedies
from lsp_server.remedies import Remedy


class Reason(StrEnum):
    """Why there is nothing to show."""

    DISABLED = "disabled"
    DISABLED_LANGUAGE = "disabled_language"
    DISABLED_FILE = "disabled_file"
    PROSE = "prose"
    EMPTY_FILE = "empty_file"
    SECRET_FILE = "secret_file"
    IGNORED_FILE = "ignored_file"
    UNCLEAR_IGNORE_FILE = "unclear_ignore_file"
    TOO_LARGE = "too_large"
    LINE_TOO_LONG = "line_too_long"
    BINARY = "binary"
    OUT_OF_STEP = "out_of_step"
    UNKNOWN_DOCUMENT = "unknown_document"
    BAD_POSITION = "bad_position"
    HOST_UNREACHABLE = "host_unreachable"
    HOST_LOADING = "host_loading"
    HOST_FAILED = "host_failed"
    DEVICE_LOST = "device_lost"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    MODEL_SAID_NOTHING = "model_said_nothing"
    ONLY_SENTINELS = "only_sentinels"
    LEFT_SCOPE = "left_scope"
    REPEATS_ITSELF = "repeats_itself"
    ONLY_REPEATS_NEXT_LINES = "only_repeats_next_lines"
    ONLY_REPEATS_REST = "only_repeats_rest"
    BLANK = "blank"
    BRACKET_ONLY = "bracket_only"
    BREAKS_CODE = "breaks_code"

    @property
    def sentence(self) -> str:
        """The reason for people."""
        return _SENTENCES[self]

    @property
    def remedy(self) -> Remedy | None:
        """What a person can do about it, if anything."""
        return _REMEDIES.get(self)


_SENTENCES = {
    Reason.DISABLED: "completion is switched off",
    Reason.DISABLED_LANGUAGE: "completion is switched off for this language",
    Reason.DISABLED_FILE: "a pattern of `disabled_globs` names the file",
    Reason.PROSE: "nothing is suggested in prose by itself: ask for it, or switch the language on",
    Reason.EMPTY_FILE: "nothing is suggested in an empty file by itself: ask for it",
    Reason.SECRET_FILE: "the file may hold secrets: it is neither completed in nor sent",
    Reason.IGNORED_FILE: "a .gitignore or .foregramignore names the file",
    Reason.UNCLEAR_IGNORE_FILE: "a .gitignore or .foregramignore above the file is a link, no "
    "ordinary file, or too large to judge: the file is left alone, to be sure",
    Reason.TOO_LARGE: "the file is too large",
    Reason.LINE_TOO_LONG: "the line, or another one of the file, is too long",
    Reason.BINARY: "the file is binary",
    Reason.OUT_OF_STEP: "a change to the file could not be applied; reopening it helps",
    Reason.UNKNOWN_DOCUMENT: "the editor has not opened the document",
    Reason.BAD_POSITION: "the position lies outside of the document",
    Reason.HOST_UNREACHABLE: "the completion host cannot be reached",
    Reason.HOST_LOADING: "the model is still being loaded",
    Reason.HOST_FAILED: "the completion host reported a failure",
    Reason.DEVICE_LOST: "the completion host lost its GPU",
    Reason.SUPERSEDED: "a newer request took its place",
    Reason.CANCELLED: "the editor cancelled the request",
    Reason.MODEL_SAID_NOTHING: "the model had nothing to add",
    Reason.ONLY_SENTINELS: "the model wrote only its own control tokens",
    Reason.LEFT_SCOPE: "the model left the block that the cursor stands in",
    Reason.REPEATS_ITSELF: "the model wrote the same again and again",
    Reason.ONLY_REPEATS_NEXT_LINES: "the model only repeated the lines below the cursor",
    Reason.ONLY_REPEATS_REST: "the model only repeated the rest of the line",
    Reason.BLANK: "the model wrote only white space",
    Reason.BRACKET_ONLY: "the model wrote only brackets",
    Reason.BREAKS_CODE: "what the model wrote would have left the code broken here",
}


_REMEDIES = {
    Reason.DISABLED: remedies.ENABLE,
    Reason.DISABLED_LANGUAGE: remedies.ENABLE_LANGUAGE,
    Reason.DISABLED_FILE: remedies.OPEN_SETTINGS,
    Reason.PROSE: remedies.ENABLE_LANGUAGE,
    Reason.EMPTY_FILE: remedies.TRIGGER,
    Reason.SECRET_FILE: remedies.ALLOW_FILE,
    Reason.IGNORED_FILE: remedies.ALLOW_FILE,
    Reason.UNCLEAR_IGNORE_FILE: remedies.ALLOW_FILE,
    Reason.OUT_OF_STEP: remedies.REOPEN_FILE,
    Reason.UNKNOWN_DOCUMENT: remedies.REOPEN_FILE,
    Reason.HOST_UNREACHABLE: remedies.DOCTOR,
    Reason.HOST_LOADING: remedies.WAIT,
    Reason.HOST_FAILED: remedies.DOCTOR,
    Reason.DEVICE_LOST: remedies.SHOW_LOGS,
    Reason.MODEL_SAID_NOTHING: remedies.TRIGGER,
    Reason.LEFT_SCOPE: remedies.TRIGGER,
    Reason.BLANK: remedies.TRIGGER,
    Reason.BRACKET_ONLY: remedies.TRIGGER,
    Reason.BREAKS_CODE: remedies.TRIGGER,
}
HIDING = frozenset(
    {Reason.IGNORED_FILE, Reason.LINE_TOO_LONG, Reason.SECRET_FILE, Reason.UNCLEAR_IGNORE_FILE}
)
SILENCING = frozenset({Reason.EMPTY_FILE, Reason.PROSE})  # who asks gets something all the same
HOST_TROUBLES = frozenset(
    {Reason.DEVICE_LOST, Reason.HOST_FAILED, Reason.HOST_LOADING, Reason.HOST_UNREACHABLE}
)
WITHDRAWN = frozenset({Reason.CANCELLED, Reason.SUPERSEDED})  # nobody waits for these any more


class EmptyAnswer(msgspec.Struct, frozen=True):
    """One empty answer. Of the document it holds the place, never its text."""

    time_s: float  # since the epoch
    file: str  # its name, as people may see it
    reason: Reason
    uri: str = ""
    line: int | None = None  # from 1
    detail: str = ""  # what a person needs beside the reason's sentence

    @property
    def sentence(self) -> str:
        """The reason for people."""
        return f"{self.reason.sentence} ({self.detail})" if self.detail else self.reason.sentence

    def shown(self, now_s: float) -> dict[str, Any]:
        """As editors and `foregram why --json` tell it."""
        told = {
            "file": self.file,
            "line": self.line,
            "reason": self.reason.value,
            "sentence": self.sentence,
            "time_s": self.time_s,
            "age_s": round(max(0.0, now_s - self.time_s), 1),
            "remedy": self.reason.remedy and msgspec.to_builtins(self.reason.remedy),
        }
        return {key: value for key, value in told.items() if value is not None}


class ReasonLog:
    """The last empty answers, the oldest first."""

    def __init__(self, size: int = 100, *, clock: Callable[[], float] = time.time) -> None:
        self._answers: deque[EmptyAnswer] = deque(maxlen=size)
        self._clock = clock

    def add(
        self, uri: str, reason: Reason, line: int | None = None, detail: str = ""
    ) -> EmptyAnswer:
        """Note an empty answer for the document at `uri`; `line` counts from 1."""
        answer = EmptyAnswer(self._clock(), shown_name(uri), reason, uri, line, detail)
        self._answers.append(answer)
        return answer

    @property
    def answers(self) -> tuple[EmptyAnswer, ...]:
        """The answers noted."""
        return tuple(self._answers)

    def of(self, uri: str) -> list[EmptyAnswer]:
        """Those of one document, the newest first."""
        return worth_telling([one for one in self._answers if one.uri == uri])[::-1]

    def to_json(self) -> bytes:
        """The answers for another process, such as `foregram why`."""
        return msgspec.json.encode(self.answers)


def worth_telling(answers: Sequence[EmptyAnswer]) -> list[EmptyAnswer]:
    """Without those that a newer request took the place of, and what each key repeats.

    The oldest comes first. Where nothing else is known, those are told all the same.
    """
    told = [one for one in answers if one.reason not in WITHDRAWN] or answers
    repeats = groupby(told, key=lambda one: (one.uri, one.line, one.reason))
    return [list(same)[-1] for _, same in repeats]


def answers_from_json(content: bytes) -> tuple[EmptyAnswer, ...]:
    """What `ReasonLog.to_json` wrote. Raises msgspec.DecodeError."""
    return msgspec.json.decode(content, type=tuple[EmptyAnswer, ...])


def base_name(uri: str) -> str:
    """The last part of a URI's path, as people know the file."""
    try:
        path = urlsplit(uri).path
    except ValueError:
        path = uri
    return unquote(path.rstrip("/").rpartition("/")[2])


def shown_name(uri: str) -> str:
    """A file's name as it may be shown: a terminal obeys nothing in it."""
    return harmless(base_name(uri))


def harmless(text: str) -> str:
    """`text` on one line, without what a terminal would take for a command."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
