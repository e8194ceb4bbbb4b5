"""The file that is typed in, in the pool: what stands before the cursor and behind.

It stays from one request to the next and is tokenised only where it changed, so a key costs a few
lines, however long the file. Of a long one each completion adds a part, the nearest text first. The
text near before the cursor, of which each key makes other tokens, is added for one completion at a
time, as are the tokens that are generated behind it.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

import numpy as np

from engine.common_start import num_changed
from engine.drafting.pool import DocumentId, NgramPool, PoolFullError
from engine.drafting.tokenised_text import TokenisedText
from engine.drafting.tree import Source
from engine.request import CompletionRequest
from engine.text_blocks import Encode

_STEP_CHARS = 25_000  # in which the beginning of what is held moves
_NEW_CHARS = 50_000  # of a part, that one completion tokenises: others wait for it meanwhile
_NEAR_CHARS = 2048  # the near text has one to two times as many, wherever its lines end
_Part = Literal["before", "near", "behind"]
_MOST_CHARS: dict[_Part, int] = {"before": 1_000_000, "behind": 500_000}


class EditedFile:
    """The file of the last request."""

    def __init__(self, pool: NgramPool, encode: Encode) -> None:
        """Feed `pool`; `encode` takes any text and adds no special tokens."""
        self._pool = pool
        self._encode = encode
        self._workspace = self._path = ""
        self._texts: dict[_Part, TokenisedText] = {}
        self._documents: dict[_Part, DocumentId] = {}
        self._reach: dict[_Part, int] = {}  # characters of a part that are held, or will be next

    @contextmanager
    def completed(self, request: CompletionRequest, unsettled: str) -> Iterator[None]:
        """Hold the file for a completion; generated tokens may follow it.

        The newest document ends at the cursor, without `unsettled`, the text before the cursor
        whose tokens may still change. All that is added to the pool meanwhile is taken back.
        """
        prefix = request.prefix
        near = max(0, len(prefix) // _NEAR_CHARS - 1) * _NEAR_CHARS
        if (request.workspace, request.path) != (self._workspace, self._path):
            self.close()
        self._workspace, self._path = request.workspace, request.path
        self._hold("behind", Source.SUFFIX, lambda reach: request.suffix[:reach])
        self._hold("before", Source.EDITED_FILE, lambda reach: prefix[_start(near, reach) : near])
        with self._pool.savepoint():
            tokens = self._tokens("near", prefix[near:].removesuffix(unsettled))
            with suppress(PoolFullError):  # drafting loses a little, decoding nothing
                self._pool.add(tokens, Source.EDITED_FILE, self._path)
            yield

    def close(self) -> None:
        """Forget the file."""
        for document in self._documents.values():
            self._pool.remove(document)
        self._documents.clear()
        self._texts.clear()
        self._reach.clear()

    def close_all(self, scope: str) -> None:
        """Forget the file if it is of a workspace whose name begins so."""
        if self._workspace.startswith(scope):
            self.close()

    def forget(self, workspace: str, paths: Collection[str]) -> None:
        """Forget the file if it is one of these."""
        if self._workspace == workspace and self._path in paths:
            self.close()

    def _hold(self, part: _Part, source: Source, text_within: Callable[[int], str]) -> None:
        """Have a document of a text: the former one, or a new one where the text changed.

        It reaches farther each time; where it is another text by now, it begins again.
        """
        held, reach = self._texts.get(part), self._reach.get(part, 0)
        if held is None or held.longest_block <= _NEAR_CHARS:  # a longer one is all tokenised again
            reach = min(reach + _NEW_CHARS, _MOST_CHARS[part])
        text, former = text_within(reach), held.text if held else ""
        if num_changed(former, text) > 2 * _NEW_CHARS:
            reach = _NEW_CHARS
            text = text_within(reach)
            self._texts.pop(part, None)
        self._reach[part] = reach
        if part in self._documents:
            if former == text:
                return
            self._pool.remove(self._documents.pop(part))
        self._documents[part] = self._pool.add(self._tokens(part, text), source, self._path)

    def _tokens(self, part: _Part, text: str) -> np.ndarray:
        if part in self._texts:
            self._texts[part].become(text)
        else:
            self._texts[part] = TokenisedText(text, self._encode)
        return self._texts[part].token_ids


def _start(end: int, num_chars: int) -> int:
    """Where so many characters before `end` begin, or some fewer: it moves in steps."""
    return -(-max(0, end - num_chars) // _STEP_CHARS) * _STEP_CHARS
