"""The words that a text is found by: its names, and the words that these are made of."""

import re
from collections.abc import Iterable
from functools import lru_cache

from engine.names import names_in

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST = 64  # characters of a name; what is longer was made by a program
_SHORTEST = 3  # characters of a part
_MOST_CACHED = 1 << 16


def words_in(text: str) -> set[str]:
    """Return the words of a text, in lower case: `loadYaml` is `loadyaml`, `load` and `yaml`."""
    return words_of(names_in(text, 2))


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
