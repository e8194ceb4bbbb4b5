"""The first step's draft goes by text: the cursor may stand where no token of the file ends.

A prefix that ends in indentation or half a word ends in tokens that the same text elsewhere does
not have. So the tokens before that piece are looked up, also without their last ones; what follows
them is kept where its bytes begin with the piece, and tokenised again behind it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.drafting.pool import NgramPool
from engine.drafting.pool.token_log import Continuation, Wanted
from engine.drafting.tree import Draft
from engine.model.vocabulary import Vocabulary

BACK = 2  # last tokens of the context whose borders may differ elsewhere
PATHS = 64  # texts that are tokenised again, the weightiest
FULL_PATHS = 4  # of them in their full length; the others serve short branches
PATH_TOKENS = 64


@dataclass(frozen=True, slots=True)
class TextLookup:
    """Looks up text in a pool. `vocabulary` and `encode` are the model's tokenizer.

    `in_blocks`: the blocks of a text have the tokens that they have in the whole.
    """

    pool: NgramPool
    vocabulary: Vocabulary
    encode: Callable[[str], Sequence[int]]
    in_blocks: bool = False

    def draft(self, context_ids: Sequence[int], partial: bytes, nodes: int, *, owed: bool) -> Draft:
        """Draft what follows the tokens `context_ids` and the bytes `partial` behind them.

        `owed`: the answer begins with `partial` (a token is healed); else the prompt ends with it.
        """
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
        """Continuations of the context without `back` tokens, and the bytes of these.

        Only those whose text is these bytes, `partial` and more.
        """
        end = len(context_ids) - back
        left_out = context_ids[end:]  # what goes on so was found with the whole context
        lead = b"".join(map(self.vocabulary.bytes_of, left_out))
        wanted = Wanted(lead + partial, self.vocabulary.spellings, tuple(left_out))
        for found in self.pool.continuations(context_ids[:end], PATH_TOKENS, wanted):
            yield found.closer(back), lead

    def _retokenised(
        self, continuation: Continuation, skipped: int, num_tokens: int
    ) -> Continuation:
        """The first tokens of a continuation anew, without its first `skipped` bytes.

        Behind the first block, tokens are what they were.
        """
        tokens = continuation.tokens[:num_tokens]
        if not skipped:
            return continuation._replace(tokens=tokens)
        texts = [self.vocabulary.bytes_of(token) for token in tokens.tolist()]
        num_anew = _first_block(texts, skipped) if self.in_blocks else 0
        text = b"".join(texts[:num_anew] if num_anew else texts)[skipped:]
        ids = self.encode(text.decode("utf-8", "ignore"))
        # A text that was cut somewhere has a last token that is none of the whole.
        ids = [*ids, *tokens[num_anew:].tolist()] if num_anew else ids[:-1]
        return continuation._replace(tokens=np.array(ids, np.int32))


def _first_block(texts: Sequence[bytes], skipped: int) -> int:
    """How many tokens end with a block, beyond the first `skipped` bytes; 0 where none does."""
    end = 0
    for num_tokens, text in enumerate(texts, 1):
        end += len(text)
        if end > skipped and text.endswith(b"\n"):
            following = b"".join(texts[num_tokens : num_tokens + 2]).lstrip(b" \t")
            if following[:1] not in (b"", b"\n", b"\r"):
                return num_tokens
    return 0
