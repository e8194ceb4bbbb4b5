"""Scores drafting alone: the target text plays a model that always chooses what was written.

No model runs. Prefix, target and suffix are encoded apart, as a fill-in-the-middle prompt has
them; a step emits the drafted tokens that agree with the target, and one more.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.bench.task_sets import ReplayItem
from engine.drafting.acceptance import AcceptanceTable, AcceptanceTables
from engine.drafting.pool import NgramPool
from engine.drafting.pool.chains import CONTEXT
from engine.drafting.pool.expansion import prior_acceptance
from engine.drafting.text_lookup import TextLookup
from engine.drafting.tree import Draft, Source
from engine.model.prompt import cut_piece
from engine.model.tokenizer import Tokenizer
from tests.bench.oracle_score import CASES, OracleCase, OracleScore

POOL_TOKENS = 1 << 19  # a file and eight buffers of 20 KB, several times over


@dataclass(frozen=True, slots=True)
class _Encoded:
    """An item's texts as token ids. `head` is the prefix without the piece at the cursor."""

    head: Sequence[int]
    piece: str
    target: Sequence[int]
    suffix: Sequence[int]
    open_buffers: Sequence[Sequence[int]]


class Oracle:
    """Replays items against a pool. Each case learns what is accepted from item to item."""

    def __init__(self, tokenizer: Tokenizer, cases: Sequence[OracleCase] = CASES) -> None:
        self._tokenizer = tokenizer
        self._tables = {
            case: AcceptanceTables({"pool": AcceptanceTable(prior_acceptance())}) for case in cases
        }
        self._pool = NgramPool(POOL_TOKENS, len(tokenizer.vocabulary))
        self._lookup = TextLookup(
            self._pool,
            tokenizer.vocabulary,
            tokenizer.encode,
            in_blocks=tokenizer.encodes_blocks,
        )

    def run(self, items: Iterable[ReplayItem]) -> list[OracleScore]:
        """Score every item in every case; one score for each kind of item and case."""
        scores: dict[tuple[str, OracleCase], OracleScore] = {}
        for item in items:
            encoded = self._encoded(item)
            for case, tables in self._tables.items():
                score = scores.setdefault((item.kind, case), OracleScore(item.kind, case))
                self._replay(encoded, tables, score)
        return list(scores.values())

    def _encoded(self, item: ReplayItem) -> _Encoded:
        encode, piece = self._tokenizer.encode, cut_piece(item.prefix)
        return _Encoded(
            head=encode(item.prefix.removesuffix(piece)),
            piece=piece,
            target=encode(item.target),
            suffix=encode(item.suffix),
            open_buffers=[encode(buffer.text) for buffer in item.open_buffers],
        )

    def _replay(self, item: _Encoded, tables: AcceptanceTables, score: OracleScore) -> None:
        """Play one target; afterwards the pool is as it was before."""
        self._pool.acceptance = tables["pool"]
        with self._pool.savepoint():
            for ids in reversed(item.open_buffers if score.case.open_buffers else ()):
                self._pool.add(ids, Source.OPEN_BUFFER)
            self._pool.add(item.suffix, Source.SUFFIX)
            score.tokens += self._play(item, tables, score)
        score.items += 1

    def _play(self, item: _Encoded, tables: AcceptanceTables, score: OracleScore) -> int:
        """Write the target step by step; return its tokens."""
        self._pool.add(item.head, Source.EDITED_FILE)
        written, played = list(item.head), 0
        while played < len(item.target):
            began = time.perf_counter()
            draft = self._draft(item, written, score.case.nodes, is_first=played == 0)
            micros = 1e6 * (time.perf_counter() - began)
            accepted = agreeing(draft, item.target[played:])
            emitted = item.target[played : played + int(accepted.sum()) + 1]
            tables.update(draft, accepted)
            grown = emitted if played else self._resewn(item, emitted)
            self._pool.extend(grown)
            written += grown
            score.count(draft, accepted, micros, is_first=played == 0)
            played += len(emitted)
        return played

    def _draft(
        self, item: _Encoded, written: Sequence[int], nodes: int, *, is_first: bool
    ) -> Draft:
        if is_first:
            piece = item.piece.encode("utf-8", "replace")
            return self._lookup.draft(item.head[-CONTEXT:], piece, nodes, owed=False)
        return self._pool.draft(written[-CONTEXT:], nodes)

    def _resewn(self, item: _Encoded, emitted: Sequence[int]) -> Sequence[int]:
        """The piece at the cursor and the first tokens as a text without a cursor has them.

        So the next lookups match the same text elsewhere across the cursor.
        """
        try:
            text = self._tokenizer.decode_bytes(emitted).decode()
        except UnicodeDecodeError:  # the last token ends within a character
            return [*self._tokenizer.encode(item.piece), *emitted]
        return self._tokenizer.encode(item.piece + text)


def agreeing(draft: Draft, target: Sequence[int]) -> np.ndarray:
    """Tell which nodes, bool [nodes], are on the path that the target takes through the draft."""
    accepted = np.zeros(len(draft.tokens), bool)
    here, depth = -1, 0
    for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
        if parent == here and depth < len(target) and token == target[depth]:
            accepted[node], here, depth = True, node, depth + 1
    return accepted
