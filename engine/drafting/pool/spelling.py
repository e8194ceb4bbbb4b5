"""The kernel that picks the occurrences of a context whose text goes on with given bytes."""

from typing import NamedTuple

import numpy as np

from kernels.compiled import njit

SKIPPED = 2  # the kind of occurrence that passes over tokens, as in expansion.py


class Wanted(NamedTuple):
    """The text that must follow an occurrence, and tokens that must not."""

    text: bytes  # the tokens that follow begin with it
    spellings: tuple[np.ndarray, np.ndarray]  # of a vocabulary: bytes, and where each token begins
    excluded: tuple[int, ...] = ()  # the first tokens that follow; empty excludes nothing


def pick(
    tokens: np.ndarray, length: int, found: np.ndarray, count: int, wanted: Wanted
) -> np.ndarray:
    """Places int64 in `found` of what goes on as `wanted`, without what skips tokens."""
    text, excluded = np.frombuffer(wanted.text, np.uint8), np.array(wanted.excluded, np.int32)
    picked = np.empty(count, np.int64)
    kept: int = _pick(tokens, length, found, text, wanted.spellings, excluded, picked)
    return picked[:kept]


@njit(cache=True)
def _pick(tokens, length, found, text, spellings, excluded, picked):
    kept = 0
    for place in range(len(picked)):
        slot = found[place].slot
        if (
            found[place].kind != SKIPPED
            and _begins(tokens, length, slot, text, spellings)
            and not _goes_on_with(tokens, length, slot, excluded)
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
def _goes_on_with(tokens, length, slot, excluded):
    """Whether the tokens from `slot` on are the excluded ones, where there are any."""
    for place in range(excluded.size):
        if slot < 0 or slot + place >= length or tokens[slot + place] != excluded[place]:
            return False
    return excluded.size > 0
