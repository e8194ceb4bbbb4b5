"""The n-gram pool as a slow dictionary: documents are plain lists."""

from dataclasses import dataclass, field

from engine.drafting.pool import PoolDocument


@dataclass
class NaivePool:
    """Documents by id, as far as drafting may see them."""

    documents: dict[PoolDocument, list[int]] = field(default_factory=dict)

    def snapshot(self) -> "NaivePool":
        return NaivePool({document: [*tokens] for document, tokens in self.documents.items()})

    def followers(self, context: list[int]) -> dict[tuple[PoolDocument, int], int]:
        """Return the longest match by (document, position) of texts that end like the context."""
        found = {}
        for document, tokens in self.documents.items():
            for position in range(1, len(tokens)):
                match = 0
                while (
                    match < min(position, len(context), 32)
                    and tokens[position - 1 - match] == context[-1 - match]
                ):
                    match += 1
                if match:
                    found[document, position] = match
        return found

    def continuation(
        self, document: PoolDocument, position: int, num_tokens: int
    ) -> tuple[int, ...]:
        return tuple(self.documents[document][position : position + num_tokens])
