"""The language, words and windows of lines that an index takes from a text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from engine.text.names import names_in
from lsp_server.language_names import language_of_file
from lsp_server.prompt.grammars import GRAMMARS

_FAMILIES = {
    "javascriptreact": "javascript",
    "typescript": "javascript",
    "typescriptreact": "javascript",
    "c": "cpp",
}
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MOST_NAME_CHARS = 64  # a longer name was made by a program
_LEAST_PART_CHARS = 3  # characters; shorter parts of names, as in `to_x`, tell little
_MOST_CACHED = 1 << 16  # names whose words are cached
_WINDOW_LINES = 40  # the most lines of a window, as of Zed's chunks
_LEAST_WINDOW = 20  # lines of a window that ends at a blank line: half of the most
_LONG_LINE = 1_000  # characters; nobody writes a longer line by hand
_HEAD_CHARS = 2_000  # characters of a text that are searched for its generator's mark
# As Go's tools, protobuf and many others have it: https://go.dev/s/generatedcode.
_GENERATED = re.compile(
    r"@generated\b|\bgenerated\b.{0,200}\bDO NOT EDIT\b", re.DOTALL | re.IGNORECASE
)


def language_of(path: str) -> str:
    """Return the LSP name of a file's language, or "" if it has no grammar."""
    language = language_of_file(path)
    return language if language in GRAMMARS else ""


def family_of(path: str) -> str:
    """Return a name shared by files that use each other; without a grammar, the ending."""
    language = language_of(path)
    return _FAMILIES.get(language, language) or PurePosixPath(path).suffix.lower()


def words_in(text: str) -> set[str]:
    """Return the words of a text, in lower case: `loadYaml` is `loadyaml`, `load` and `yaml`."""
    return words_of(names_in(text, 2))


def words_of(names: Iterable[str]) -> set[str]:
    """Return the words of names."""
    return {word for name in set(names) for word in words_of_name(name)}


@lru_cache(maxsize=_MOST_CACHED)
def words_of_name(name: str) -> tuple[str, ...]:
    """Return the words of one name, each once."""
    if len(name) > _MOST_NAME_CHARS:
        return ()
    parts = {part.lower() for part in _PART.findall(name) if len(part) >= _LEAST_PART_CHARS}
    return tuple({name.lower(), *parts})


def windows(text: str) -> Iterator[str]:
    """Yield the windows of a text, each of whole lines; none of them is blank."""
    lines, start = text.split("\n"), 0
    while start < len(lines):
        end = _end(lines, start)
        if any(map(str.strip, lines[start:end])):
            yield "\n".join(lines[start:end])
        start = end


def _end(lines: Sequence[str], start: int) -> int:
    """Return a window's end: behind the last blank line of its second half, if any."""
    longest = start + _WINDOW_LINES
    if longest >= len(lines):
        return len(lines)
    ends = range(longest, start + _LEAST_WINDOW, -1)
    return next((end for end in ends if not lines[end - 1].strip()), longest)


def is_minified(text: str) -> bool:
    """Whether most of a text stands on lines that are too long to be read."""
    return 2 * sum(len(line) for line in text.split("\n") if len(line) > _LONG_LINE) > len(text)


def is_generated(text: str) -> bool:
    """Whether a text's head says that a program wrote it, so that only definitions are indexed."""
    return _GENERATED.search(text, 0, _HEAD_CHARS) is not None
