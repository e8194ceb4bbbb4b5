"""Which replica a workspace is on. Plain data: the router asks, and tells where it went.

Each workspace has an order of the replicas of its own, by rendezvous hashing (Thaler and
Ravishankar 1998): every router finds the same, without talking to another, and a replica that comes
or goes moves no workspace but those that it takes or had.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

_MOST_MOVED = 10_000  # workspaces that are remembered to be elsewhere than their hash says


@dataclass(slots=True)
class Placement:
    """Remembers the workspaces that were moved because their replica had too much to do.

    They stay where they went, for as long as that replica lives: to go back would cost them what
    they have there.
    """

    most_moved: int = _MOST_MOVED
    _moved: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def order(self, workspace: str, replicas: Collection[str]) -> list[str]:
        """All replicas, the workspace's own first; the next is for when that has no room."""
        ranked = sorted(replicas, key=lambda replica: _weight(workspace, replica))
        own = self._moved.get(workspace)
        if own is not None and own in replicas:
            ranked.remove(own)
            return [own, *ranked]
        return ranked

    def note(self, workspace: str, replica: str, replicas: Collection[str]) -> None:
        """A request of the workspace went to a replica."""
        if min(replicas, key=lambda one: _weight(workspace, one), default=replica) == replica:
            self._moved.pop(workspace, None)
            return
        self._moved[workspace] = replica
        self._moved.move_to_end(workspace)
        if len(self._moved) > self.most_moved:
            self._moved.popitem(last=False)


def _weight(workspace: str, replica: str) -> bytes:
    return hashlib.blake2b(f"{workspace}\0{replica}".encode(), digest_size=8).digest()
