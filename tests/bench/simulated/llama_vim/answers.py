"""The cache of answers, the search for one behind its typed part, and the part that is shown."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.bench.simulated.llama_vim.context import FimContext, key_of

_MOST = 250
_LOOK_BEHIND = 128  # characters of a typed part


@dataclass(slots=True)
class Answers:
    """Texts by the text around the cursor; the least recently used one goes first."""

    _texts: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def keep(self, keys: Iterable[str], text: str) -> None:
        for key in keys:
            if len(self._texts) >= _MOST:
                self._texts.popitem(last=False)
            self._texts[key] = text
            self._texts.move_to_end(key)

    def holds(self, keys: Iterable[str]) -> bool:
        """Whether one of these requests is already answered (`llama#fim`)."""
        return any(self._get(key) is not None for key in keys)

    def find(self, context: FimContext) -> str | None:
        """Return the rest of an answer at this place (`s:fim_try_hint`)."""
        if (text := self._get(context.key)) is not None:
            return text
        before, found, best = context.prefix + context.middle, None, 0
        for length in range(1, min(_LOOK_BEHIND, len(before)) + 1):
            typed = before[-length:]
            text = self._get(key_of(before[:-length], context.suffix))
            if text is None or not text.startswith(typed) or len(text) == length:
                continue
            rest = text[length:]
            if found is None:
                found = rest  # `best` stays 0, as in the plugin: the next one replaces it
            elif len(rest) > best:
                found, best = rest, len(rest)
        return found

    def _get(self, key: str) -> str | None:
        if key in self._texts:
            self._texts.move_to_end(key)
        return self._texts.get(key)


def hint_of(answer: str, lines: Sequence[str], row: int, column: int) -> list[str]:
    """Return the lines shown behind the cursor (`s:fim_render`); empty if there are none to accept.

    A backspace at the start is a column of indentation that accepting would remove.
    """
    content = answer.split("\n")
    while content and not content[-1]:
        content.pop()
    if not content:
        return []
    line = lines[row]
    if not line.strip(" \t"):
        content[0], line = _indented(content[0], line, column)
    if _repeats_below(content, lines, row, line[:column]) or content == [line[column:]]:
        return []
    return content if "".join(content).strip() else []


def _indented(first: str, line: str, column: int) -> tuple[str, str]:
    """Replace a blank line's indentation by that of the answer."""
    lead = min(len(first) - len(first.lstrip(" \t")), len(line))
    kept = first[:lead]
    return "\b" * (min(column, len(line)) - lead) + first[lead:], kept


def _repeats_below(content: Sequence[str], lines: Sequence[str], row: int, before: str) -> bool:
    """Whether the answer repeats the text below the cursor's line."""
    following = list(lines[row + 1 : row + len(content)])
    if len(content) > 1 and not content[0] and content[1:] == following:
        return True
    below = row + 1
    while below < len(lines) - 1 and not lines[below].strip(" \t"):
        below += 1
    if below >= len(lines) or before + content[0] != lines[below]:
        return False
    if len(content) == 1:
        return True
    if len(content) == 2:
        return below + 1 < len(lines) and lines[below + 1].startswith(content[1])
    return list(content[1:]) == list(lines[below + 1 : below + len(content)])
