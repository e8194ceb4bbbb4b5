"""The cache of answers, and the search for one behind its typed part."""

from collections import OrderedDict
from collections.abc import Iterable
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
