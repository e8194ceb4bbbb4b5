"""What every form of edit prompts has in common: the document, the prompt and its answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.request import EditTask, Snippet


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


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Lines `first` up to, not including, `end` of the document become `lines`."""

    first: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EditPrompt:
    """A prompt for an edit of a block of lines, and the reader of its answer."""

    text: str  # a raw prompt: names of special tokens stand for them; it ends with `prefill`
    block: str  # the text that the whole answer, prefill included, mostly repeats
    prefill: str  # the beginning of the answer
    stops: tuple[str, ...]
    # Takes the model's text, without the prefill, and whether it was cut by a token limit.
    # Raises RefusedEditError.
    read: Callable[[str, bool], LineEdit]
