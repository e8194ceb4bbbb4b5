"""The kernel that picks the occurrences of a context whose text goes on with given bytes."""

from typing import NamedTuple

import numpy as np
from numba import njit

SKIPPED = 2  # the kind of occurrence that passes over tokens, as in expansion.py


class Wanted(NamedTuple):
    """What an occurrence has to go on with, and what it must not."""

    text: bytes  # its tokens begin with it
    spellings: tuple[np.ndarray, np.ndarray]  # of a vocabulary: bytes, and where each token begins
    but: tuple[int, ...] = ()  # tokens, where there are any


def pick(
    tokens: np.ndarray, length: int, found: np.ndarray, count: int, wanted: Wanted
) -> np.ndarray:
    """Places int64 in `found` of those that go on as `wanted`, without those that skip tokens."""
    text, but = np.frombuffer(wanted.text, np.uint8), np.array(wanted.but, np.int32)
    picked = np.empty(count, np.int64)
    kept: int = _pick(tokens, length, found, text, wanted.spellings, but, picked)
    return picked[:kept]


@njit(cache=True)
def _pick(tokens, length, found, text, spellings, but, picked):
    kept = 0
    for place in range(len(picked)):
        slot = found[place].slot
        if (
            found[place].kind != SKIPPED
            and _begins(tokens, length, slot, text, spellings)
            and not _goes_on_with(tokens, length, slot, but)
        ):
            picked[kept] = place
            kept += 1
    return kept


@njit(cache=True)
def _begins(tokens, length, slot, text, spellings):
    """Whether the tokens from `slot` on spell `text` and whatever follows; -1 is a text's end."""
    all_text, starts = spellings
    done = 0
    while done < text.size:
        if slot < 0 or slot >= length or tokens[slot] < 0:
            return False
        token = tokens[slot]
        if token + 1 < starts.size:  # padded embeddings have more
            for place in range(starts[token], starts[token + 1]):
                if done < text.size and all_text[place] != text[done]:
                    return False
                done += 1
        slot += 1
    return True


@njit(cache=True)
def _goes_on_with(tokens, length, slot, but):
    """Whether the tokens from `slot` on are those of `but`, where that has any."""
    for place in range(but.size):
        if slot < 0 or slot + place >= length or tokens[slot + place] != but[place]:
            return False
    return but.size > 0
