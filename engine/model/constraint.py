"""What the next token has to keep to. Plain and lookahead decoding apply the same constraint."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from engine.model.byte_trie import ByteTrie
from engine.model.vocabulary import Vocabulary


class Constraint(Protocol):
    """A state of what may come next."""

    @property
    def allowed_ids(self) -> np.ndarray | None:
        """Ascending int64 ids of the tokens that may come next; None: all."""
        ...

    def allows(self, token_id: int) -> bool:
        """Tell whether this token may come next."""
        ...

    def after(self, token_id: int) -> "Constraint":
        """Return the state behind a token. Raises ValueError for one that is not allowed."""
        ...


@dataclass(frozen=True, slots=True)
class Unconstrained:
    """Any token may come next."""

    @property
    def allowed_ids(self) -> np.ndarray | None:
        """All."""
        return None

    def allows(self, token_id: int) -> bool:  # noqa: ARG002 - any will do
        """Tell that it may."""
        return True

    def after(self, token_id: int) -> Self:  # noqa: ARG002 - any will do
        """Stay free."""
        return self


@dataclass(frozen=True, slots=True)
class HealedStart:
    """Token healing: the text has to begin with `owed`, the bytes that were cut off at the cursor."""

    owed: bytes
    trie: ByteTrie
    vocabulary: Vocabulary

    @property
    def allowed_ids(self) -> np.ndarray | None:
        """Ids of the tokens that begin with the owed bytes, or that these begin with."""
        return self.trie.ids_completing(self.owed)

    def allows(self, token_id: int) -> bool:
        """Tell whether the token is among them."""
        return token_id not in self.vocabulary.special_ids and self._fits(
            self.vocabulary.bytes_of(token_id)
        )

    def after(self, token_id: int) -> Constraint:
        """Owe less, or nothing any more."""
        token = self.vocabulary.bytes_of(token_id)
        if not self._fits(token):
            raise ValueError(f"{token!r} does not keep to {self.owed!r}")
        return healed_start(self.owed[len(token) :], self.trie, self.vocabulary)

    def _fits(self, token: bytes) -> bool:
        return bool(token) and (token.startswith(self.owed) or self.owed.startswith(token))


def healed_start(owed: bytes, trie: ByteTrie, vocabulary: Vocabulary) -> Constraint:
    """Return the constraint of a prompt that `owed` was dropped from."""
    return HealedStart(owed, trie, vocabulary) if owed else Unconstrained()
