"""Constraints on the next token, which plain and lookahead decoding apply alike."""

from dataclasses import dataclass

import numpy as np

from engine.model.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Constraint:
    """Token healing: the text must begin with `owed`, the bytes dropped before the cursor."""

    owed: bytes
    vocabulary: Vocabulary

    @property
    def allowed_ids(self) -> np.ndarray:
        """Return the ids of the tokens that may come next, int64 ascending."""
        return self.vocabulary.ids_completing(self.owed)

    def allows(self, token_id: int) -> bool:
        """Whether the token may come next."""
        is_text = token_id not in self.vocabulary.special_ids
        return is_text and self._fits(self.vocabulary.bytes_of(token_id))

    def after(self, token_id: int) -> "Constraint | None":
        """Return the constraint after a token, if any. Raises ValueError if it is not allowed."""
        token = self.vocabulary.bytes_of(token_id)
        if not self._fits(token):
            raise ValueError(f"{token!r} does not keep to {self.owed!r}")
        return healed_start(self.owed[len(token) :], self.vocabulary)

    def _fits(self, token: bytes) -> bool:
        return bool(token) and (token.startswith(self.owed) or self.owed.startswith(token))


def healed_start(owed: bytes, vocabulary: Vocabulary) -> Constraint | None:
    """Return the constraint of a prompt that `owed` was dropped from; None allows all tokens."""
    return Constraint(owed, vocabulary) if owed else None
