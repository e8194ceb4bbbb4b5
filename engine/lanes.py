"""Places for completions that run side by side, each with a pool of the texts that it drafts from."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.drafting.edited_file import EditedFile
from engine.drafting.open_buffers import OpenBuffers
from engine.drafting.pool import NgramPool
from engine.drafting.tree import Source
from engine.request import ClosedBuffers


@dataclass(slots=True, eq=False)
class Lane:
    """A pool, and what it holds of the workspace that was completed here last."""

    pool: NgramPool
    buffers: OpenBuffers
    edited: EditedFile
    workspace: str = ""
    is_taken: bool = False
    closed: list[ClosedBuffers] = field(default_factory=list)  # meanwhile

    def forget(self, closed: ClosedBuffers) -> None:
        """Draft no longer from buffers, nor from what was written in them."""
        self.buffers.close(closed.workspace, closed.keys)
        self.edited.forget(closed.workspace, closed.paths)
        self.pool.remove_all(Source.PREVIOUS_COMPLETION, closed.paths)

    def leave(self) -> None:
        """It is idle from now on: nobody waits for what takes its time."""
        self.is_taken = False
        while self.closed:
            self.forget(self.closed.pop())
        if self.pool.wasteful:
            self.pool.compact()


class Lanes:
    """Made as they are needed. A workspace comes back to the lane that knows its buffers."""

    def __init__(self, make: Callable[[], Lane]) -> None:
        self._make = make
        self._lanes: list[Lane] = []  # the one that was left last comes last

    @property
    def pool_tokens(self) -> int:
        """Tokens that drafts are found in."""
        return sum(len(lane.pool) for lane in self._lanes)

    @contextmanager
    def take(self, workspace: str) -> Iterator[Lane]:
        """Have a lane for oneself: the workspace's own, or the one that was left longest ago."""
        lane = self._idle(workspace)
        lane.workspace, lane.is_taken = workspace, True
        try:
            yield lane
        finally:
            lane.leave()
            self._lanes.remove(lane)
            self._lanes.append(lane)

    def forget(self, closed: ClosedBuffers) -> None:
        """Draft no longer from buffers; where a completion is under way, as soon as it is over."""
        for lane in self._lanes:
            if lane.is_taken:
                lane.closed.append(closed)
            else:
                lane.forget(closed)

    def forget_completions(self) -> None:
        """Draft no longer from completions written before."""
        for lane in self._lanes:
            lane.pool.remove_all(Source.PREVIOUS_COMPLETION)

    def _idle(self, workspace: str) -> Lane:
        idle = [lane for lane in self._lanes if not lane.is_taken]
        known = [lane for lane in idle if lane.workspace == workspace]
        if not idle:
            self._lanes.append(self._make())
            return self._lanes[-1]
        return (known or idle)[0]
