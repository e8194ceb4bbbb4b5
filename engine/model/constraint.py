"""What the next token has to keep to. Plain and lookahead decoding apply the same constraint."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from engine.model.byte_trie import ByteTrie
from engine.model.healing import Healing
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
    """The text has to begin with the bytes that were cut off at the cursor."""

    healing: Healing
    trie: ByteTrie
    vocabulary: Vocabulary

    @property
    def allowed_ids(self) -> np.ndarray | None:
        """Ids of the tokens that keep to the owed bytes."""
        return self.healing.allowed(self.trie)

    def allows(self, token_id: int) -> bool:
        """Tell whether the token keeps to the owed bytes."""
        return token_id not in self.vocabulary.special_ids and self.healing.allows(
            self.vocabulary.bytes_of(token_id)
        )

    def after(self, token_id: int) -> Constraint:
        """Owe less, or nothing any more."""
        rest = self.healing.after(self.vocabulary.bytes_of(token_id))
        return Unconstrained() if rest.done else HealedStart(rest, self.trie, self.vocabulary)


def healed_start(owed: bytes, trie: ByteTrie, vocabulary: Vocabulary) -> Constraint:
    """Return the constraint of a prompt that `owed` was dropped from."""
    return HealedStart(Healing(owed), trie, vocabulary) if owed else Unconstrained()
