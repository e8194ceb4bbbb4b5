"""Token healing: an answer must begin with the bytes that were cut off at the cursor."""

from dataclasses import dataclass

import numpy as np

from engine.model.byte_trie import ByteTrie


@dataclass(frozen=True, slots=True)
class Healing:
    """The bytes that the answer still owes. A drafted branch has one of its own."""

    remaining: bytes

    @property
    def done(self) -> bool:
        """True when any token may follow."""
        return not self.remaining

    def allowed(self, trie: ByteTrie) -> np.ndarray:
        """Ascending int64 ids of the tokens that may come next. Raises ValueError when done."""
        if self.done:
            raise ValueError("nothing is owed, so every token is allowed")
        return trie.ids_completing(self.remaining)

    def allows(self, token: bytes) -> bool:
        """Tell whether a token of these bytes may come next."""
        return bool(token) and (
            token.startswith(self.remaining) or self.remaining.startswith(token)
        )

    def after(self, token: bytes) -> "Healing":
        """Return what is owed after the token. Raises ValueError for one that is not allowed."""
        if self.done:
            return self
        if not self.allows(token):
            raise ValueError(f"{token!r} does not keep to {self.remaining!r}")
        return Healing(self.remaining[len(token) :])
