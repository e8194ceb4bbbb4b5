"""What the next token has to keep to. Plain and lookahead decoding apply the same constraint."""

from dataclasses import dataclass

import numpy as np

from engine.model.byte_trie import ByteTrie


class Constraint:
    """A state of what may come next: any token, where a subclass does not say less."""

    __slots__ = ()

    @property
    def allowed_ids(self) -> np.ndarray | None:
        """Ascending int64 ids of the tokens that may come next; None: all."""
        return None

    def allows(self, token_id: int) -> bool:  # noqa: ARG002 - any will do
        """Tell whether this token may come next."""
        return True

    def after(self, token_id: int) -> "Constraint":  # noqa: ARG002 - any will do
        """Return the state behind a token. Raises ValueError for one that is not allowed."""
        return self


UNCONSTRAINED = Constraint()


@dataclass(frozen=True, slots=True)
class HealedStart(Constraint):
    """Token healing: the text has to begin with `owed`, the bytes that were cut off at the cursor."""

    owed: bytes
    trie: ByteTrie

    @property
    def allowed_ids(self) -> np.ndarray | None:
        """Ids of the tokens that begin with the owed bytes, or that these begin with."""
        return self.trie.ids_completing(self.owed)

    def allows(self, token_id: int) -> bool:
        """Tell whether the token is among them."""
        vocabulary = self.trie.vocabulary
        is_text = token_id not in vocabulary.special_ids
        return is_text and self._fits(vocabulary.bytes_of(token_id))

    def after(self, token_id: int) -> Constraint:
        """Owe less, or nothing any more."""
        token = self.trie.vocabulary.bytes_of(token_id)
        if not self._fits(token):
            raise ValueError(f"{token!r} does not keep to {self.owed!r}")
        return healed_start(self.owed[len(token) :], self.trie)

    def _fits(self, token: bytes) -> bool:
        return bool(token) and (token.startswith(self.owed) or self.owed.startswith(token))


def healed_start(owed: bytes, trie: ByteTrie) -> Constraint:
    """Return the constraint of a prompt that `owed` was dropped from."""
    return HealedStart(owed, trie) if owed else UNCONSTRAINED
