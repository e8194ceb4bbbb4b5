"""What the index takes from a text: its words and windows of lines, its language, and whether to read it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from lsp_server.language_names import language_of_file
from lsp_server.prompt.grammars import GRAMMARS

_FAMILIES = {
    "javascriptreact": "javascript",
    "typescript": "javascript",
    "typescriptreact": "javascript",
    "c": "cpp",
}


def language_of(path: str) -> str:
    """Return the LSP name of a file's language; "" where none with a grammar has this name."""
    language = language_of_file(path)
    return language if language in GRAMMARS else ""


def family_of(path: str) -> str:
    """Return the name that is equal for files which use each other; without a grammar the ending."""
    language = language_of(path)
    return _FAMILIES.get(language, language) or PurePosixPath(path).suffix.lower()


_NAME = re.compile(r"[^\W\d]\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST = 64  # characters of a name; what is longer was made by a program
_SHORTEST = 3  # characters of a part
_MOST_CACHED = 1 << 16


def words_in(text: str) -> set[str]:
    """Return the words of a text, in lower case: `loadYaml` is `loadyaml`, `load` and `yaml`."""
    return words_of(_NAME.findall(text))


def words_of(names: Iterable[str]) -> set[str]:
    """Return the words of names."""
    return {word for name in set(names) for word in words_of_name(name)}


@lru_cache(maxsize=_MOST_CACHED)
def words_of_name(name: str) -> tuple[str, ...]:
    """Return the words of one name, each once."""
    if len(name) > _LONGEST:
        return ()
    parts = {part.lower() for part in _PART.findall(name) if len(part) >= _SHORTEST}
    return tuple({name.lower(), *parts})


_LINES = 40  # of a window at most
_LEAST = 20  # of one that ends at a blank line


def chunks(lines: Sequence[str]) -> Iterator[range]:
    """The windows of a text, as ranges of line numbers from 0; none of them is blank."""
    start = 0
    while start < len(lines):
        end = _end(lines, start)
        if any(map(str.strip, lines[start:end])):
            yield range(start, end)
        start = end


def _end(lines: Sequence[str], start: int) -> int:
    """Where a window ends: behind the last blank line in its second half, if there is one."""
    longest = start + _LINES
    if longest >= len(lines):
        return len(lines)
    ends = range(longest, start + _LEAST, -1)
    return next((end for end in ends if not lines[end - 1].strip()), longest)


_LONG = 1_000  # characters of a line that nobody has written by hand
_HEAD = 2_000  # characters of a text, where it says what wrote it
# As Go's tools, protobuf and many others have it: https://go.dev/s/generatedcode.
_MARK = re.compile(r"@generated\b|\bgenerated\b.{0,200}\bDO NOT EDIT\b", re.DOTALL | re.IGNORECASE)


def is_minified(text: str) -> bool:
    """Whether most of a text stands on lines that are too long to be read."""
    return 2 * sum(len(line) for line in text.split("\n") if len(line) > _LONG) > len(text)


def is_generated(text: str) -> bool:
    """Whether the head of a text says that a program wrote it."""
    return _MARK.search(text, 0, _HEAD) is not None
