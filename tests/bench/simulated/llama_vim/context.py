"""The part of a file in a request (`s:fim_ctx_local`)."""

from collections.abc import Sequence
from dataclasses import dataclass

PREFIX_LINES, SUFFIX_LINES = 256, 64
_TRIMMED = 3  # lines above that may have left the window when a text is looked up
_GAP = "\N{LATIN CAPITAL LETTER I WITH CIRCUMFLEX}"  # stands for the cursor


@dataclass(frozen=True, slots=True)
class FimContext:
    """The window around a cursor. `middle` is its line up to the cursor."""

    prefix: str
    middle: str
    suffix: str
    indent: int
    line_suffix: str

    @property
    def key(self) -> str:
        return key_of(self.prefix + self.middle, self.suffix)

    @property
    def keys(self) -> list[str]:
        """The cache keys of an answer, also those with lines above out of the window."""
        keys, prefix = [self.key], self.prefix
        for _ in range(_TRIMMED):
            prefix = prefix.partition("\n")[2]
            if not prefix:
                break
            keys.append(key_of(prefix + self.middle, self.suffix))
        return keys


def key_of(before: str, suffix: str) -> str:
    """Return the key of the text around a cursor, which the plugin hashes."""
    return before + _GAP + suffix


def local_context(
    lines: Sequence[str], row: int, column: int, shown: Sequence[str] = (), last_indent: int = 0
) -> FimContext:
    """Return the window at a cursor, or at its place if the lines `shown` were accepted."""
    below = [*lines[row + 1 : row + 1 + SUFFIX_LINES]]
    line = lines[row]
    first = max(0, row - PREFIX_LINES + max(0, len(shown) - 1))
    above = list(lines[first:row])
    if shown:
        if len(shown) > 1:
            above += [line + shown[0], *shown[1:-1]]
        middle, rest, indent = shown[-1] if len(shown) > 1 else line + shown[0], "", last_indent
    elif not line.strip(" \t"):
        middle, rest, indent = "", "", 0  # the model writes the indentation itself
    else:
        middle, rest, indent = line[:column], line[column:], _indent_of(line)
    return FimContext(
        prefix="\n".join(above) + "\n",
        middle=middle,
        suffix="\n".join((rest, *below)) + "\n",
        indent=indent,
        line_suffix=rest,
    )


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
