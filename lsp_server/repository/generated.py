"""Texts that programs wrote: what they define may be used, but nobody writes like them."""

import re

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
