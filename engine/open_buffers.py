"""The open buffers as documents of the pool: between two requests only what changed is replaced."""

from collections.abc import Sequence

from engine.request import Buffer
from engine.workspace import Workspace

MOST_CHARS = 2_000_000  # of all buffers; they leave the pool room for the edited file


class OpenBuffers:
    """Keeps a workspace equal to the buffers of the last request."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._paths: list[str] = []

    def sync(self, buffers: Sequence[Buffer]) -> None:
        """Hold `buffers`, most related first, as many as find room.

        The pool meets its newest document first, so the most related one is opened last.
        """
        wanted = _fitting(buffers)[::-1]
        kept = 0
        while kept < min(len(wanted), len(self._paths)) and self._paths[kept] == wanted[kept].path:
            kept += 1
        for path in self._paths[kept:]:
            self._workspace.close(path)
        self._workspace.tidy()
        for buffer in wanted[:kept]:
            self._workspace.replace(buffer.path, buffer.text)
        for buffer in wanted[kept:]:
            self._workspace.open(buffer.path, buffer.text)
        self._paths = [buffer.path for buffer in wanted]


def _fitting(buffers: Sequence[Buffer]) -> list[Buffer]:
    """The first buffer of each path, without those that are too large beside the ones before."""
    fitting: dict[str, Buffer] = {}
    room = MOST_CHARS
    for buffer in buffers:
        if buffer.path not in fitting and len(buffer.text) <= room:
            fitting[buffer.path] = buffer
            room -= len(buffer.text)
    return list(fitting.values())
