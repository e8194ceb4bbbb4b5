"""Why an answer was empty: a code for programs, a sentence for people, and the last of them."""

import time
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from urllib.parse import unquote, urlsplit

import msgspec


class Reason(StrEnum):
    """Why there is nothing to show."""

    DISABLED = "disabled"
    SECRET_FILE = "secret_file"
    IGNORED_FILE = "ignored_file"
    TOO_LARGE = "too_large"
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

    @property
    def sentence(self) -> str:
        """The reason for people."""
        return _SENTENCES[self]


_SENTENCES = {
    Reason.DISABLED: "completion is switched off for this language or file",
    Reason.SECRET_FILE: "the file may hold secrets: it is neither completed in nor sent",
    Reason.IGNORED_FILE: "a .gitignore or .foregramignore names the file",
    Reason.TOO_LARGE: "the file is too large",
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
}


class EmptyAnswer(msgspec.Struct, frozen=True):
    """One empty answer. Of the document it holds the file's name, never its text."""

    time_s: float  # since the epoch
    file: str
    reason: Reason

    @property
    def sentence(self) -> str:
        """The reason for people."""
        return self.reason.sentence


class ReasonLog:
    """The last empty answers, the oldest first."""

    def __init__(self, size: int = 100, *, clock: Callable[[], float] = time.time) -> None:
        self._answers: deque[EmptyAnswer] = deque(maxlen=size)
        self._clock = clock

    def add(self, uri: str, reason: Reason) -> EmptyAnswer:
        """Note an empty answer for the document at `uri`."""
        answer = EmptyAnswer(self._clock(), base_name(uri), reason)
        self._answers.append(answer)
        return answer

    @property
    def answers(self) -> tuple[EmptyAnswer, ...]:
        """The answers noted."""
        return tuple(self._answers)

    def to_json(self) -> bytes:
        """The answers for another process, such as `foregram why`."""
        return msgspec.json.encode(self.answers)


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
