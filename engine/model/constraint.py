"""Constraints on the next token, which plain and lookahead decoding apply alike."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from engine.model.vocabulary import Vocabulary


@dataclass(frozen=True)
class Constraint:
    """How a text begins: first with `owed`, the bytes dropped before the cursor (token healing).

    Behind those and white space, no token begins one of the texts `unlike`, if these are given, nor
    ends the text.
    """

    owed: bytes
    vocabulary: Vocabulary
    unlike: tuple[bytes, ...] | None = None

    @cached_property
    def allowed_ids(self) -> np.ndarray:
        """Return the ids of the tokens that may come next, int64 ascending."""
        fitting = self.vocabulary.ids_completing(self.owed)
        likely = [one for text in self._refused for one in self.vocabulary.ids_within(text)]
        return np.setdiff1d(fitting, [one for one in likely if not self.allows(one)])

    def allows(self, token_id: int) -> bool:
        """Whether the token may come next."""
        is_text = token_id not in self.vocabulary.special_ids
        token = self.vocabulary.bytes_of(token_id)
        return is_text and self._fits(token) and not self._repeats(token)

    def after(self, token_id: int) -> "Constraint | None":
        """Return the constraint after a token, if any. Raises ValueError if it is not allowed."""
        token = self.vocabulary.bytes_of(token_id)
        if not self._fits(token) or self._repeats(token):
            raise ValueError(f"{token!r} does not keep to {self.owed!r}")
        if not self.owed and not token.strip():
            return self
        is_begun = bool(token[len(self.owed) :].strip())
        unlike = None if is_begun else self.unlike
        return healed_start(self.owed[len(token) :], self.vocabulary, unlike)

    @cached_property
    def _refused(self) -> list[bytes]:
        return [(self.owed + text).strip() for text in self.unlike or ()]

    def _fits(self, token: bytes) -> bool:
        return bool(token) and (token.startswith(self.owed) or self.owed.startswith(token))

    def _repeats(self, token: bytes) -> bool:
        is_begun = bool(token[len(self.owed) :].strip())
        return is_begun and any(text.startswith(token.strip()) for text in self._refused)


def healed_start(
    owed: bytes, vocabulary: Vocabulary, unlike: tuple[bytes, ...] | None = None
) -> Constraint | None:
    """Return the constraint of a text behind a prompt that `owed` was dropped from, if any."""
    return Constraint(owed, vocabulary, unlike) if owed or unlike is not None else None
