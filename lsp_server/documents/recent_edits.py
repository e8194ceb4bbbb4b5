"""The lines that were edited last, in whichever document: what a person works on."""

from collections import OrderedDict

from lsp_server.documents.document import Snapshot

_MOST_LINES = 12
_LONGEST = 200  # characters of a line that are kept
_NEAR = 20  # lines from a cursor, which are its surroundings anyway


class RecentEdits:
    """Lines by document and number, as they were when they were edited."""

    def __init__(self) -> None:
        self._lines: OrderedDict[tuple[str, int], str] = OrderedDict()  # the newest last

    def note(self, snapshot: Snapshot, row: int, num_lines: int) -> None:
        """These lines have just been edited; the snapshot is the text since."""
        first = max(row, row + num_lines - _MOST_LINES)
        for number in range(first, min(row + num_lines, len(snapshot.lines))):
            key = snapshot.uri, number
            self._lines.pop(key, None)
            if snapshot.lines[number].strip():
                self._lines[key] = snapshot.lines[number][:_LONGEST]
        while len(self._lines) > _MOST_LINES:
            self._lines.popitem(last=False)

    def far_from(self, uri: str, row: int) -> tuple[str, ...]:
        """The lines that do not stand near a cursor, the newest first."""
        edited = reversed(self._lines.items())
        return tuple(
            line
            for (document, number), line in edited
            if document != uri or abs(number - row) > _NEAR
        )
