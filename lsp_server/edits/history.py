"""The user's last edits in all open documents but those too large or not to be sent."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from lsprotocol import types

from engine.edits.block import MOST_LINES
from engine.request import EditOutcome, PastEdit
from lsp_server.documents.document import Snapshot
from lsp_server.edits.edit_script import EditScript, Hunk
from lsp_server.workspace import Workspace

_MOST_HUNKS = 32  # of all documents, as many as a request carries; models are shown 6 to 10
_MOST_CHARS = 16_000  # of all hunks with the lines around them, about 4,000 tokens
_CONTEXT = 3  # lines on either side, as in a unified diff
# As vscode-nes 0.5.0 counts: a person does not type that much at once.
_BULK_CHARS, _BULK_LINES, _BULK_S = 200, 8, 1.5
_MAX_PATH = 1024  # characters

Changes = Sequence[types.TextDocumentContentChangeEvent]


class _Edited(NamedTuple):
    """The edits of a document since its opening, or since it was last hidden."""

    opening: int
    script: EditScript


class EditHistory:
    """What `follow` saw of documents, which need to be judged before: `Workspace.look`."""

    def __init__(self, workspace: Workspace, clock: Callable[[], float] = time.monotonic) -> None:
        self._workspace = workspace
        self._clock = clock
        self._edited: dict[str, _Edited] = {}  # by URI
        self._changed_at: dict[str, float] = {}  # when a document last changed
        self._bulk_at: dict[str, float] = {}  # when it last changed much at once

    def changed(self, uri: str, changes: Changes) -> None:
        """Note that a document changed, and how much at once."""
        now_s = self._changed_at[uri] = self._clock()
        # Clients that send whole documents do so at each key.
        parts = [one for one in changes if isinstance(one, types.TextDocumentContentChangePartial)]
        if sum(len(one.text) for one in parts) >= _BULK_CHARS or _num_lines(parts) >= _BULK_LINES:
            self._bulk_at[uri] = now_s

    def accepted(self) -> None:
        """Note that the last changes were suggestions."""
        self._bulk_at.clear()

    def is_bulk(self, uri: str) -> bool:
        """Whether a document has just been changed by more than typing."""
        return self._clock() - self._bulk_at.get(uri, -_BULK_S) < _BULK_S

    def follow(self, uri: str) -> None:
        """Note the changes since the last call; at the first one, from which text they start."""
        snapshot = self._sendable(uri)
        if snapshot is None:
            return
        known = self._edited.get(uri)
        if known is None or known.opening != snapshot.opening:
            self._edited[uri] = _Edited(snapshot.opening, EditScript(snapshot.lines))
        elif known.script.lines is not snapshot.lines:
            known.script.follow(snapshot.lines, self._changed_at.get(uri, self._clock()))
            self._drop_oldest()

    def forget(self, *uris: str) -> None:
        """Forget documents that were closed."""
        for uri in uris:
            for kept in (self._edited, self._changed_at, self._bulk_at):
                kept.pop(uri, None)

    def clear(self) -> None:
        """Forget everything."""
        self.forget(*self._edited, *self._changed_at)

    @property
    def newest(self) -> Hunk | None:
        """The last edit."""
        hunks = [hunk for one in self._edited.values() for hunk in one.script.hunks[-1:]]
        return max(hunks, key=lambda hunk: hunk.time_s, default=None)

    def is_undone_by(self, uri: str, hunk: Hunk) -> bool:
        """Whether a change of a document's present text would return to an earlier state."""
        known = self._edited.get(uri)
        return known is not None and known.script.is_undone_by(hunk)

    def past(self) -> tuple[PastEdit, ...]:
        """Return the edits, oldest first. Those of one document lead to its present text."""
        for uri in [uri for uri, one in self._edited.items() if self._is_told(uri, one)]:
            self.follow(uri)
        timed = [one for uri in self._edited for one in self._timed(uri)]
        timed.sort(key=lambda one: one[0])
        told, room = list[PastEdit](), _MOST_CHARS
        cut = set[str]()  # paths of which no older edit is told, as a later one has no room
        for _, edit in reversed(timed):
            if edit.path in cut or edit.num_chars > room:
                cut.add(edit.path)
            else:
                room -= edit.num_chars
                told.append(edit)
        return tuple(told[::-1])

    def past_with(self, document: Snapshot, change: EditOutcome) -> tuple[PastEdit, ...]:
        """Return the edits, and as the last one a change that is expected, or has been made."""
        if self._workspace.documents.snapshot(document.uri) is not document:
            return self.past()
        old, path = document.lines[change.first : change.end], self._path_of(document.uri)
        return (*self.past(), PastEdit(path, change.first, old, change.lines))[-_MOST_HUNKS:]

    def _path_of(self, uri: str) -> str:
        return self._workspace.permissions.path_of(uri)[:_MAX_PATH]

    def _timed(self, uri: str) -> Iterator[tuple[float, PastEdit]]:
        script, time_s, path = self._edited[uri].script, 0.0, self._path_of(uri)
        lines = script.lines
        for number, hunk in enumerate(script.hunks):
            time_s = max(time_s, hunk.time_s)  # they stay in order
            first, end = script.region_of(number)
            above, below = lines[max(0, first - _CONTEXT) : first], lines[end : end + _CONTEXT]
            yield time_s, PastEdit(path, hunk.row, hunk.old, hunk.new, above, below)

    def _is_told(self, uri: str, one: _Edited) -> bool:
        snapshot = self._workspace.documents.snapshot(uri)
        is_current = isinstance(snapshot, Snapshot) and snapshot.lines is one.script.lines
        return bool(one.script.hunks) or not is_current

    def _sendable(self, uri: str) -> Snapshot | None:
        """Return the document; if it is closed, hidden or too large, forget what it held."""
        snapshot = self._workspace.documents.snapshot(uri)
        if (
            isinstance(snapshot, Snapshot)
            and len(snapshot.lines) <= MOST_LINES
            and self._workspace.permissions.may_send(snapshot)
        ):
            return snapshot
        self.forget(uri)
        return None

    def _drop_oldest(self) -> None:
        scripts = [one.script.hunks for one in self._edited.values()]
        for _ in range(sum(map(len, scripts)) - _MOST_HUNKS):
            min(filter(None, scripts), key=lambda hunks: hunks[0].time_s).pop(0)


def _num_lines(changes: Sequence[types.TextDocumentContentChangePartial]) -> int:
    """Return how many lines come or go, or are changed where they stand."""
    counts = ((one.text.count("\n"), one.range.end.line - one.range.start.line) for one in changes)
    rows = {one.range.start.line for one in changes}
    return max(sum(map(max, counts)), len(rows))
