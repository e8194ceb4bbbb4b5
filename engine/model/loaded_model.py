"""A loaded model with its tokenizer and prompt format."""

from dataclasses import dataclass

from engine.model.causal_lm import CausalModel
from engine.model.constraint import ByteTrie
from engine.model.fim import FimFormat
from engine.model.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run. `fingerprint` changes whenever the model's files do.

    `where` is a sentence that names the device and says why no better one was chosen.
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
        """Return where it runs, what the device check found, and what degraded since."""
        return "; ".join(filter(None, (self.where, self.causal_lm.checked)))
