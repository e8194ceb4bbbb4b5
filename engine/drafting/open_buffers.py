"""Open buffers as documents of the pool: between two requests only what changed is replaced."""

from collections import OrderedDict
from collections.abc import Collection, Sequence

from engine.drafting.workspace import Workspace
from engine.request import Buffer

MOST_CHARS = 2_000_000  # of all buffers; they leave the pool room for the edited file


class OpenBuffers:
    """Keeps documents equal to the buffers that each workspace had at its last request."""

    def __init__(self, documents: Workspace) -> None:
        self._documents = documents
        self._held: OrderedDict[str, list[Buffer]] = OrderedDict()  # by workspace

    def sync(self, workspace: str, buffers: Sequence[Buffer]) -> None:
        """Hold `buffers` of a workspace, most related first, as many as find room.

        The pool meets its newest document first, so the most related one is opened last. Other
        workspaces stay while there is room, and go in the order of their last use.
        """
        wanted = _fitting(buffers)[::-1]
        held = self._held.setdefault(workspace, [])
        self._held.move_to_end(workspace)
        self._make_room(sum(len(buffer.text) for buffer in wanted))
        kept = 0
        while kept < min(len(wanted), len(held)) and _is_same(held[kept], wanted[kept]):
            kept += 1
        self._close(workspace, kept)
        self._documents.tidy()
        for place, buffer in enumerate(wanted[:kept]):
            if buffer is not held[place]:
                self._documents.replace(_name(workspace, buffer), buffer.text)
                held[place] = buffer
        for buffer in wanted[kept:]:
            self._documents.open(_name(workspace, buffer), buffer.text)
            held.append(buffer)

    def close(self, workspace: str, keys: Collection[str]) -> None:
        """Hold these buffers of a workspace no longer."""
        held = self._held.get(workspace, [])
        for buffer in [one for one in held if _key(one) in keys]:
            self._documents.close(_name(workspace, buffer))
            held.remove(buffer)

    def _make_room(self, num_chars: int) -> None:
        """Close workspaces, the least recently used first, until the last fits with `num_chars`."""
        while len(self._held) > 1 and self._num_chars_of_others() + num_chars > MOST_CHARS:
            workspace = next(iter(self._held))
            self._close(workspace, 0)
            del self._held[workspace]

    def _num_chars_of_others(self) -> int:
        *others, _ = self._held.values()
        return sum(len(buffer.text) for held in others for buffer in held)

    def _close(self, workspace: str, start: int) -> None:
        """Close the buffers of a workspace from the place `start` on."""
        held = self._held[workspace]
        while len(held) > start:
            self._documents.close(_name(workspace, held.pop()))


def _key(buffer: Buffer) -> str:
    return buffer.key or buffer.path


def _is_same(one: Buffer, other: Buffer) -> bool:
    return _key(one) == _key(other)


def _name(workspace: str, buffer: Buffer) -> str:
    return f"{workspace}\0{_key(buffer)}"


def _fitting(buffers: Sequence[Buffer]) -> list[Buffer]:
    """The first buffer of each key, without those that are too large beside the ones before."""
    fitting: dict[str, Buffer] = {}
    room = MOST_CHARS
    for buffer in buffers:
        if _key(buffer) not in fitting and len(buffer.text) <= room:
            fitting[_key(buffer)] = buffer
            room -= len(buffer.text)
    return list(fitting.values())
