"""How a document came from one version to the next, so that a host gets the changes only."""

from collections import deque
from typing import NamedTuple

from engine.host.protocol import LineSplice

MAX_SPLICES = 1_000
MAX_CHARS = 1_000_000  # beyond either, sending the whole text is no worse
Splices = tuple[LineSplice, ...]


class _Change(NamedTuple):
    version: int  # after it
    splices: Splices

    @property
    def num_splices(self) -> int:
        return max(1, len(self.splices))  # an empty change counts too

    @property
    def num_chars(self) -> int:
        return sum(len(line) for splice in self.splices for line in splice.lines)


class SpliceLog:
    """The latest changes, within bounds; the oldest are forgotten first."""

    def __init__(self, version: int) -> None:
        self._changes = deque([_Change(version, ())])  # the first only tells where they begin
        self._num_splices = 0
        self._num_chars = 0

    def add(self, version: int, splices: Splices) -> None:
        """Remember that `splices`, in their order, led to `version`, greater than all before."""
        change = _Change(version, splices)
        self._changes.append(change)
        self._num_splices += change.num_splices
        self._num_chars += change.num_chars
        while self._num_splices > MAX_SPLICES or self._num_chars > MAX_CHARS:
            self._changes.popleft()
            self._num_splices -= self._changes[0].num_splices
            self._num_chars -= self._changes[0].num_chars

    def since(self, version: int, until: int | None = None) -> Splices | None:
        """What leads from `version` to `until`, or to now; None if one is not known (any more)."""
        known = [change.version for change in self._changes]
        until = known[-1] if until is None else until
        if version not in known or until not in known or until < version:
            return None
        newer = (change for change in self._changes if version < change.version <= until)
        return tuple(splice for change in newer for splice in change.splices)
