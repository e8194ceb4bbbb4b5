"""The file that is typed in, as two documents of the pool: what stands before the cursor and behind.

They stay from one request to the next and are edited where their texts changed, so a key costs a
few lines, however long the file. The line at the cursor, of which each key makes other tokens, is
added for one completion at a time, as are the tokens that are generated behind it.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np

from engine.drafting.pool import DocumentId, NgramPool, PoolFullError
from engine.drafting.tokenised_text import Encode, TokenisedText
from engine.drafting.tree import Source
from engine.request import CompletionRequest

_BEFORE_CHARS, _BEHIND_CHARS = 1_000_000, 500_000  # of the file, around the cursor
_STEP_CHARS = 100_000  # in which the beginning of what is held moves on in a larger file
_LINE_CHARS = 4096  # of a line; what is before counts as finished
_NEAR_TOKENS = 1024


class _Side(NamedTuple):
    """A text on one side of the cursor and its document."""

    text: TokenisedText
    document: DocumentId


class EditedFile:
    """The file of the last request."""

    def __init__(self, pool: NgramPool, encode: Encode) -> None:
        """Feed `pool`; `encode` takes any text and adds no special tokens."""
        self._pool = pool
        self._encode = encode
        self._workspace = self._path = ""
        self._sides: dict[Source, _Side] = {}

    @contextmanager
    def completed(self, request: CompletionRequest, unsettled: str) -> Iterator[DocumentId]:
        """Hold the file for a completion; generated tokens may follow the document.

        It ends at the cursor, without `unsettled`, the text before the cursor whose tokens may
        still change. All that is done to the pool meanwhile is undone at the end.
        """
        prefix = request.prefix
        line_start = prefix.rfind("\n") + 1
        line_start += (len(prefix) - line_start) // _LINE_CHARS * _LINE_CHARS
        beyond = max(0, line_start - _BEFORE_CHARS)
        start = -(-beyond // _STEP_CHARS) * _STEP_CHARS
        if (request.workspace, request.path) != (self._workspace, self._path):
            self.close()
        self._workspace, self._path = request.workspace, request.path
        self._hold(Source.SUFFIX, request.suffix[:_BEHIND_CHARS])
        self._hold(Source.EDITED_FILE, prefix[start:line_start])
        with self._pool.savepoint():
            self._append(prefix[line_start:].removesuffix(unsettled))
            yield self._sides[Source.EDITED_FILE].document

    def close(self) -> None:
        """Forget the file."""
        for side in self._sides.values():
            self._pool.remove(side.document)
        self._sides.clear()

    def forget(self, workspace: str, paths: Collection[str]) -> None:
        """Forget the file if it is one of these."""
        if self._workspace == workspace and self._path in paths:
            self.close()

    def _hold(self, source: Source, text: str) -> None:
        """Make a document equal to a text."""
        if source not in self._sides:
            tokenised = TokenisedText(text, self._encode)
            document = self._pool.add(tokenised.token_ids, source, self._path)
            self._sides[source] = _Side(tokenised, document)
            return
        tokenised, document = self._sides[source]
        if tokenised.text != text:
            try:
                self._pool.edit(document, *tokenised.become(text))
            except Exception:
                self.close()  # it is not what the text says
                raise

    def _append(self, line: str) -> None:
        """Let the line at the cursor follow the text before it.

        What is near is written once more: the pool meets its newest text first. A full pool is
        left as it is: drafting loses a little, decoding nothing.
        """
        document = self._sides[Source.EDITED_FILE].document
        near = self._pool.tail(document, _NEAR_TOKENS)
        ids = np.concatenate([near, np.array(self._encode(line), np.int32)])
        end = self._pool.length_of(document)
        with suppress(PoolFullError):
            self._pool.edit(document, end - near.size, end, ids)
