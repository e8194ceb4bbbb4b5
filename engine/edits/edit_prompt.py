"""What every form of edit prompts has in common: the document, the prompt and its answer."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.request import EditOutcome, EditTask, Snippet


class Refusal(StrEnum):
    """The reason why a prompt or an answer proposes nothing."""

    LARGE_FILE = "large_file"
    LONG_LINES = "long_lines"  # in the block
    EMPTY_BLOCK = "empty_block"  # there is no text around the cursor
    EMPTY_ANSWER = "empty_answer"
    TOKEN_LIMIT = "token_limit"  # the answer was cut
    SPECIAL_TOKEN = "special_token"  # the answer begins with one, or the block has its text
    MALFORMED = "malformed"  # the answer is not of the model's form
    NO_CHANGE = "no_change"
    BLANK_LINES = "blank_lines"  # only these change
    INSERTION_ABOVE = "insertion_above"  # above the cursor, and nothing else changes
    LARGE_CHANGE_ABOVE = "large_change_above"
    REVERT = "revert"  # it returns to an earlier state


class RefusedEditError(Exception):
    """An answer that proposes nothing, with the reason as a code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class EditedDocument:
    """A document to change, by its lines without line ends."""

    path: str
    lines: Sequence[str]
    row: int  # of the cursor, from 0
    column: int  # code points before the cursor in its line
    task: EditTask
    snippets: tuple[Snippet, ...] = ()  # of other files, best first
    room: int = 65_536  # characters to show besides the block; Sweep's server asks for no more
    marked: Callable[[str], str] = str  # keeps the names of special tokens in a text plain text


@dataclass(frozen=True, slots=True)
class EditPrompt:
    """A prompt for an edit of a block of lines, and the reader of its answer."""

    text: str  # a raw prompt: names of special tokens stand for them; it ends with `prefill`
    block: str  # the text that the whole answer, prefill included, mostly repeats
    prefill: str  # the beginning of the answer
    stops: tuple[str, ...]
    # Takes the model's text, without the prefill, and whether a limit cut it.
    # Raises RefusedEditError.
    read: Callable[[str, bool], EditOutcome]


# Lays out a prompt for the next edit as a model knows it. Raises RefusedEditError.
EditFormat = Callable[[EditedDocument], EditPrompt]


def fitting(texts: Iterable[str], room: int) -> list[str]:
    """Return the first texts, as many as have so many characters together at most."""
    taken = list[str]()
    for text in texts:
        room -= len(text)
        if room < 0:
            break
        taken.append(text)
    return taken
