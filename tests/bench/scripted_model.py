"""A model that writes a script, sure of most of it: no weights, the same in every run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from engine.engine import Engine, PromptSizes
from engine.model.causal_lm import StepInput
from engine.model.eager import EagerModel, Logits
from engine.model.tokenizer import Tokenizer
from engine.progress import Progress
from tests.support.byte_tokenizer import own_tokenizer
from tests.support.prepared import engine_of

_PROMPT_TOKENS = 4096  # a token has about a byte, so this is a quarter of a usual prompt's text
_ANCHOR_BYTES = 200  # bytes of the prompt's end that are searched for in the script
_END, _PREFIX, _MIDDLE, _SUFFIX = 0, 1, 2, 3  # ids of the byte tokenizer


@dataclass(slots=True)
class ListedSlot:
    """A `CacheSlot` that holds the tokens themselves."""

    capacity: int
    token_ids: list[int] = field(default_factory=list)
    rows: Sequence[int] = ()  # tokens of the last step
    num_bytes: int = 0

    @property
    def length(self) -> int:
        return len(self.token_ids)

    def copy_from(self, other: "ListedSlot", length: int) -> None:
        self.token_ids = other.token_ids[:length]

    def commit(self, rows: Sequence[int]) -> None:
        self.token_ids += [self.rows[row] for row in rows]

    def truncate(self, length: int) -> None:
        del self.token_ids[length:]


class ScriptedModel(EagerModel):
    """Continues `before`, the text up to the cursor, by `after`, and then ends."""

    max_context = 16_384
    device, dtype_name = "cpu", "float32"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.before = self.after = b""
        self.prompt = b""  # of the last step, with the names of special tokens
        self.vocab_size = len(tokenizer.vocabulary)
        self._vocabulary = tokenizer.vocabulary
        self._ids = {
            tokenizer.vocabulary.bytes_of(one): one for one in range(_SUFFIX + 4, self.vocab_size)
        }
        self._longest = max(map(len, self._ids))

    def new_slot(self, capacity: int) -> Any:  # its length is a property
        return ListedSlot(capacity)

    def _forward(self, step: StepInput) -> Logits:
        tree, held = step.tree, step.slot.token_ids
        step.slot.rows = tree.token_ids.tolist()
        values = np.zeros((tree.num_rows, self.vocab_size), np.float32)
        paths: list[list[int]] = []
        for row, (token, parent) in enumerate(
            zip(step.slot.rows, tree.parents.tolist(), strict=True)
        ):
            paths.append([*(paths[parent] if row else ()), token])
            if step.has_head:
                allowed = step.allowed[row] if step.allowed is not None else None
                chosen, probability = self._next([*held, *paths[row]], allowed)
                odds = probability / (1 - probability)
                values[row, chosen] = log(odds * (self.vocab_size - 1))
        return Logits(values)

    def _next(self, token_ids: list[int], allowed: np.ndarray | None) -> tuple[int, float]:
        """Return the next id, and the model's certainty of it."""
        rest = self._rest(token_ids)
        known = None if allowed is None else set(allowed.tolist())
        for length in range(min(self._longest, len(rest)), 0, -1):
            token = self._ids.get(rest[:length])
            if token is not None and (known is None or token in known):
                return token, _sureness(self.before[-20:] + rest)
        return (_END if known is None else min(known)), 0.9

    def _rest(self, token_ids: list[int]) -> bytes:
        """Return the script behind these tokens; empty if they do not follow it."""
        middle = _first(token_ids, _MIDDLE, -1)  # a draft may contain another
        begin = _first(token_ids, _PREFIX, -1)
        text = self._vocabulary.bytes_of_all
        written = text(token_ids[middle + 1 :])
        if middle == len(token_ids):
            anchor = text(token_ids)
        else:
            self.prompt = text(token_ids[: middle + 1])
            anchor = text(token_ids[begin + 1 : _first(token_ids, _SUFFIX, begin)])
        anchor = anchor[-_ANCHOR_BYTES:]
        end = len(self.before)
        while end >= len(anchor) and (found := self.before.rfind(anchor, 0, end)) >= 0:
            rest = self.before[found + len(anchor) :] + self.after
            if rest.startswith(written):
                return rest[len(written) :]
            end = found + len(anchor) - 1
        return b""


def scripted_engine(folder: Path) -> tuple[Engine, ScriptedModel]:
    """Return an engine with a scripted model. It learns in `folder`, which should be empty."""
    tokenizer = own_tokenizer()
    model = ScriptedModel(tokenizer)
    sizes = PromptSizes(_PROMPT_TOKENS, _PROMPT_TOKENS)
    return engine_of("scripted", model, tokenizer, folder, Progress(), sizes), model


def _sureness(text: bytes) -> float:
    """Return a probability that depends on the text alone: high, but low at one place of 64."""
    chance = crc32(text) % 64
    return 0.3 if chance == 0 else 0.9 if chance < 3 else 0.9995


def _first(token_ids: Sequence[int], wanted: int, start: int) -> int:
    found = (at for at, one in enumerate(token_ids) if one == wanted and at > start)
    return next(found, len(token_ids))
