"""The window of a request, the cache of answers, and what llama.vscode makes of a text."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

PREFIX_LINES, SUFFIX_LINES = 256, 64
_MOST = 250  # answers that are kept


@dataclass(frozen=True, slots=True)
class Window:
    """The text around a cursor as a request has it. `prompt` is its line up to the cursor."""

    prefix: str
    suffix: str
    prompt: str

    @classmethod
    def at(cls, lines: Sequence[str], row: int, column: int) -> Self:
        """Return the window; white space alone before the cursor is left to the model."""
        line = lines[row]
        before, rest = line[:column], line[column:]
        above = lines[max(0, row - PREFIX_LINES) : row]
        below = lines[row + 1 : row + 1 + SUFFIX_LINES]
        return cls(
            "\n".join(above) + "\n",
            "\n".join((rest, *below)) + "\n",
            before if before.strip(" \t") else "",
        )

    def behind(self, text: Sequence[str]) -> Self:
        """Return the window as if the lines of a text were accepted."""
        *above, last = (self.prompt + text[0], *text[1:])
        prefix = self.prefix.split("\n")[:-1] + above
        kept = prefix[-PREFIX_LINES:] if above else prefix
        return type(self)("\n".join(kept) + "\n", self.suffix, last)


@dataclass(slots=True)
class Answers:
    """Texts by window; the least recently used ones go first."""

    _texts: OrderedDict[Window, tuple[str, ...]] = field(default_factory=OrderedDict)

    def keep(self, window: Window, texts: Sequence[str]) -> None:
        self._texts[window] = tuple(texts)
        self._texts.move_to_end(window)
        if len(self._texts) > _MOST:
            self._texts.popitem(last=False)

    def get(self, window: Window) -> tuple[str, ...] | None:
        if window in self._texts:
            self._texts.move_to_end(window)
        return self._texts.get(window)

    def find(self, window: Window) -> tuple[str, ...] | None:
        """Return the texts at a window, or the rest of texts whose beginning was typed since."""
        if (texts := self.get(window)) is not None:
            return texts
        for length in range(len(window.prompt) + 1):
            cut = len(window.prompt) - length
            typed = window.prompt[cut:]
            earlier = Window(window.prefix, window.suffix, window.prompt[:cut])
            rests = [
                text[length:] for text in self.get(earlier) or () if text and text.startswith(typed)
            ]
            if rests:
                return tuple(rests)
        return None


def lines_of(text: str) -> list[str]:
    """Cut a text into lines, without blank ones at its end."""
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def shown_of(text: Sequence[str], lines: Sequence[str], row: int, column: int) -> str | None:
    """Return what is shown of a text's lines at a cursor; None if they only repeat the document."""
    rest = lines[row][column:]
    if not text or _repeats(text, lines, row, column):
        return None
    if rest.strip():
        if text[0].endswith(rest):
            return text[0].removesuffix(rest)
        return text[0]
    return "\n".join(text)


def _repeats(text: Sequence[str], lines: Sequence[str], row: int, column: int) -> bool:
    before, rest = lines[row][:column], lines[row][column:]
    if row == len(lines) - 1:
        return False
    following = list(lines[row + 1 : row + len(text)])
    if len(text) > 1 and text[0].strip() in ("", rest.strip()) and list(text[1:]) == following:
        return True
    if list(text) == [rest]:
        return True
    below = next((n for n in range(row + 1, len(lines)) if lines[n].strip()), None)
    if below is None or before + text[0] != lines[below]:
        return False
    if len(text) == 2:
        return "".join(lines[below + 1 : below + 2]).startswith(text[1])
    return list(text[1:]) == list(lines[below + 1 : below + len(text)])
