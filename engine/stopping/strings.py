"""Stop strings: the caller's own ends of a text, of which nothing is ever shown."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StopStrings:
    """None of them is empty."""

    strings: tuple[str, ...]

    def cut(self, text: str, num_new: int) -> int | None:
        """Where the first of them begins that ends within the last `num_new` characters."""
        starts = [
            start
            for one in self.strings
            if (start := text.find(one, max(0, len(text) - num_new - len(one) + 1))) >= 0
        ]
        return min(starts, default=None)

    def held(self, text: str) -> int:
        """How much of the text no later `cut` can take back: its end may begin one of them."""
        return min((_begun(text, one) for one in self.strings), default=len(text))


def _begun(text: str, string: str) -> int:
    """Where the longest beginning of `string` stands that `text` ends with."""
    first = max(0, len(text) - len(string) + 1)
    starts = (start for start in range(first, len(text)) if string.startswith(text[start:]))
    return next(starts, len(text))
