"""The file that is typed in, in the pool: what stands before the cursor and behind.

It stays from one request to the next, and its blocks are remembered, so a key has a few lines
tokenised, however long the file. Of a long one each completion adds a part, the nearest text first. The
text near before the cursor, of which each key makes other tokens, is added for one completion at a
time, as are the tokens that are generated behind it.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from engine.common_start import num_changed
from engine.drafting.pool import DocumentId, NgramPool, PoolFullError
from engine.drafting.tree import Source
from engine.model.remembered_encoding import Encode
from engine.request import CompletionRequest

_STEP_CHARS = 25_000  # in which the beginning of what is held moves
_NEW_CHARS = 50_000  # of a part, that one completion tokenises: others wait for it meanwhile
_NEAR_CHARS = 2048  # the near text has one to two times as many, wherever its lines end
_Part = Literal["before", "near", "behind"]
_MOST_CHARS: dict[_Part, int] = {"before": 1_000_000, "behind": 500_000}
REMEMBERED_CHARS = 4_000_000  # twice what all parts have, and some more


class EditedFile:
    """The file of the last request."""

    def __init__(self, pool: NgramPool, make_encode: Callable[[], Encode]) -> None:
        """Feed `pool`; what is made takes any text, adds no special tokens and remembers blocks.

        It is made anew for each file, so that nothing of the one before stays.
        """
        self._pool = pool
        self._make_encode, self._encode = make_encode, make_encode()
        self._workspace = self._path = ""
        self._texts: dict[_Part, str] = {}
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
            tokens = self._encode(prefix[near:].removesuffix(unsettled))
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
        self._encode = self._make_encode()

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
        former, reach = self._texts.get(part, ""), self._reach.get(part, 0)
        if reach < _MOST_CHARS[part] and _has_short_lines(former):  # a longer one is one block
            reach = min(reach + _NEW_CHARS, _MOST_CHARS[part])
        text = text_within(reach)
        if num_changed(former, text) > 2 * _NEW_CHARS:
            reach = _NEW_CHARS
            text = text_within(reach)
        self._reach[part], self._texts[part] = reach, text
        if part in self._documents:
            if former == text:
                return
            self._pool.remove(self._documents.pop(part))
        self._documents[part] = self._pool.add(self._encode(text), source, self._path)


def _start(end: int, num_chars: int) -> int:
    """Where so many characters before `end` begin, or some fewer: it moves in steps."""
    return -(-max(0, end - num_chars) // _STEP_CHARS) * _STEP_CHARS


def _has_short_lines(text: str) -> bool:
    return all(len(line) <= _NEAR_CHARS for line in text.splitlines())
