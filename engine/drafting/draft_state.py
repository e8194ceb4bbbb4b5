"""The texts that completions draft from: a pool for each workspace and parallel completion."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.drafting.edited_file import EditedFile
from engine.drafting.open_buffers import OpenBuffers
from engine.drafting.pool import NgramPool
from engine.drafting.recycler import Recycler
from engine.drafting.tree import Source
from engine.request import ClosedBuffers

MOST_STATES = 128  # of all principals together
_NOBODYS = ""  # workspace of a state whose client has left, and of requests that name none
_MOST_TOKENS = 4_000_000  # in all pools of a principal, of which the last used one stays


@dataclass(slots=True, eq=False)
class DraftState:
    """A pool, and the texts in it from the workspace that used it last."""

    principal: str  # owner of all its texts
    recycler: Recycler
    pool: NgramPool
    buffers: OpenBuffers
    repository: OpenBuffers  # snippets of files that are not open
    edited: EditedFile
    workspace: str = _NOBODYS
    is_taken: bool = False
    closed: list[ClosedBuffers] = field(default_factory=list)  # while it was taken

    def forget(self, closed: ClosedBuffers) -> None:
        """Forget buffers and completions in them; all texts if the client has no buffer left."""
        self.pool.remove_all(Source.PREVIOUS_COMPLETION, closed.paths)
        texts = self.buffers, self.repository, self.edited
        if closed.takes_all_of(self.workspace):
            self.workspace = _NOBODYS
            for one in texts:
                one.close()
        elif self.workspace == closed.workspace:
            for one in texts:
                one.forget(closed.keys | closed.paths)

    def is_of_all(self, closed: ClosedBuffers) -> bool:
        """Whether to forget the whole state, including its recycler."""
        return closed.is_all and closed.takes_all_of(self.workspace)


class DraftStates:
    """A state for each workspace, and for each of its parallel completions."""

    def __init__(
        self,
        make: Callable[[str], DraftState],
        most: int = MOST_STATES,  # beyond, the principal with most loses its longest idle one
        most_tokens: int = _MOST_TOKENS,  # of a principal; beyond, its longest idle states go
    ) -> None:
        self._make = make
        self._most, self._most_tokens = most, most_tokens
        self._states: list[DraftState] = []  # the last used one comes last

    def pool_tokens(self, principal: str = "") -> int:
        """Count the tokens in one principal's pools, or in all if unnamed. Safe from any thread."""
        return sum(len(one.pool) for one in self._of(principal))

    def num_bytes(self, principal: str = "") -> int:
        """Return the memory of these pools and of their recyclers. Safe from any thread."""
        states = self._of(principal)
        recyclers = {one.recycler for one in states}  # a principal's states share one
        return sum(one.pool.num_bytes for one in states) + sum(one.num_bytes for one in recyclers)

    def _of(self, principal: str) -> list[DraftState]:
        states = list(self._states)
        return [one for one in states if not principal or one.principal == principal]

    @contextmanager
    def take(self, workspace: str, principal: str = "") -> Iterator[DraftState]:
        """Take a state for one completion: the workspace's own, a free one, or a new one."""
        state = self._idle(workspace, principal)
        state.workspace, state.is_taken = workspace, True
        try:
            yield state
        finally:
            is_over = any(state.is_of_all(one) for one in state.closed)
            state.is_taken = False
            while state.closed:
                state.forget(state.closed.pop())
            if state.pool.wasteful:
                state.pool.compact()
            self._states.remove(state)
            if not is_over:
                self._states.append(state)
            self._shed(principal)

    def forget(self, closed: ClosedBuffers) -> None:
        """Forget buffers: at once in idle states, after the completion in others."""
        own = [state for state in self._states if state.principal == closed.principal]
        for state in own:
            if state.is_taken:
                state.closed.append(closed)
            elif state.is_of_all(closed):
                self._states.remove(state)
            else:
                state.forget(closed)

    def forget_completions(self) -> None:
        """Stop drafting from earlier completions."""
        for state in self._states:
            state.pool.remove_all(Source.PREVIOUS_COMPLETION)

    def _idle(self, workspace: str, principal: str) -> DraftState:
        idle = [one for one in self._states if one.principal == principal and not one.is_taken]
        for name in (workspace, _NOBODYS):
            if fitting := [one for one in idle if one.workspace == name]:
                return fitting[0]
        self._make_room()
        self._states.append(self._make(principal))
        return self._states[-1]

    def _shed(self, principal: str) -> None:
        own = [one for one in self._states if one.principal == principal]
        num_tokens = sum(len(one.pool) for one in own)
        for one in own[:-1]:
            if num_tokens > self._most_tokens and not one.is_taken:
                self._states.remove(one)
                num_tokens -= len(one.pool)

    def _make_room(self) -> None:
        """Drop idle states for a new one, as even an empty one takes some megabytes."""
        while len(self._states) >= self._most:
            idle = [state for state in self._states if not state.is_taken]
            if not idle:
                return
            num_of = Counter(state.principal for state in self._states)
            self._states.remove(max(idle, key=lambda state: num_of[state.principal]))
