"""A model in memory with all that belongs to it."""

from dataclasses import dataclass

from engine.model.causal_lm import CausalModel
from engine.model.constraint import ByteTrie
from engine.model.fim import FimFormat
from engine.model.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Ready to run. `fingerprint` changes whenever the model's files do.

    `where` says in a sentence where it runs, and why nothing better was taken.
    """

    name: str
    fingerprint: str
    causal_lm: CausalModel
    tokenizer: Tokenizer
    fim: FimFormat
    trie: ByteTrie
    where: str = ""

    @property
    def place(self) -> str:
        """Where it runs, what was found there, and what has become worse since."""
        return "; ".join(filter(None, (self.where, self.causal_lm.checked)))
