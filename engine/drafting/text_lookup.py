"""Drafts the first step by text, as the cursor may stand where no token of the file ends.

Half a word or indentation has other tokens than the same text elsewhere. So we look up the tokens
before that piece, keep continuations whose bytes begin with it, and tokenise them again behind it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.drafting.pool import NgramPool
from engine.drafting.pool.token_log import Continuation, Wanted
from engine.drafting.tree import Draft
from engine.model.tokenizer import Tokenizer

BACK = 2  # last tokens of the context whose borders may differ elsewhere
PATHS = 64  # continuations of most weight, which are tokenised again
FULL_PATHS = 4  # paths of full length; the others become short branches
PATH_TOKENS = 64  # of a full path: as many as a first draft has nodes (MAX_ROWS // 2)


@dataclass(frozen=True, slots=True)
class TextLookup:
    """A lookup of text in a pool of the tokenizer's tokens."""

    pool: NgramPool
    tokenizer: Tokenizer

    def draft(self, context_ids: Sequence[int], partial: bytes, nodes: int, *, owed: bool) -> Draft:
        """Draft after `context_ids` and `partial`; the answer begins with it if `owed` (healed)."""
        told = b"" if owed else partial
        found = [
            (continuation, len(lead + told))
            for back in range(min(BACK, len(context_ids) - 1) + 1)
            for continuation, lead in self._continuations(context_ids, back, partial)
        ]
        found.sort(key=lambda pair: -pair[0].weight)
        paths = [
            self._retokenised(continuation, skipped, PATH_TOKENS // (1 + rank // FULL_PATHS))
            for rank, (continuation, skipped) in enumerate(found[:PATHS])
        ]
        return self.pool.draft_from(paths, nodes)

    def _continuations(
        self, context_ids: Sequence[int], back: int, partial: bytes
    ) -> Iterator[tuple[Continuation, bytes]]:
        """Yield continuations that repeat the bytes of the last `back` tokens, and `partial`."""
        end = len(context_ids) - back
        left_out = context_ids[end:]  # the whole context finds their continuations
        vocabulary = self.tokenizer.vocabulary
        lead = b"".join(map(vocabulary.bytes_of, left_out))
        wanted = Wanted(lead + partial, vocabulary.spellings, tuple(left_out))
        for found in self.pool.continuations(context_ids[:end], PATH_TOKENS, wanted):
            yield found.closer(back), lead

    def _retokenised(
        self, continuation: Continuation, skipped: int, num_tokens: int
    ) -> Continuation:
        """Tokenise the first block again, without its first `skipped` bytes; later tokens stay."""
        tokens = continuation.tokens[:num_tokens]
        if not skipped:
            return continuation._replace(tokens=tokens)
        texts = [self.tokenizer.vocabulary.bytes_of(token) for token in tokens.tolist()]
        num_anew = _first_block(texts, skipped) if self.tokenizer.encodes_blocks else 0
        text = b"".join(texts[:num_anew] if num_anew else texts)[skipped:]
        ids = self.tokenizer.encode(text.decode("utf-8", "ignore"))
        # The last token of a cut text may not be one of the whole text.
        ids = [*ids, *tokens[num_anew:].tolist()] if num_anew else ids[:-1]
        return continuation._replace(tokens=np.array(ids, np.int32))


def _first_block(texts: Sequence[bytes], skipped: int) -> int:
    """Number of tokens to the first end of a block beyond `skipped` bytes; 0 if there is none."""
    end = 0
    for num_tokens, text in enumerate(texts, 1):
        end += len(text)
        if end > skipped and text.endswith(b"\n"):
            following = b"".join(texts[num_tokens : num_tokens + 2]).lstrip(b" \t")
            if following[:1] not in (b"", b"\n", b"\r"):
                return num_tokens
    return 0
