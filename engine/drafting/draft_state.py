"""What completions draft from: each workspace, and each completion, has a pool of texts for itself."""

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

MOST_STATES = 128  # of all principals
# The workspace of a state whose client has left; a request that names none may have it, too.
_NOBODYS = ""
_MOST_TOKENS = 4_000_000  # of a principal's pools, beside the one that was used last


@dataclass(slots=True, eq=False)
class DraftState:
    """A pool, and what it holds of the workspace that was completed here last."""

    principal: str  # whose texts alone it holds
    recycler: Recycler
    pool: NgramPool
    buffers: OpenBuffers
    repository: OpenBuffers  # what the prompt may show of files that are not open
    edited: EditedFile
    workspace: str = _NOBODYS
    is_taken: bool = False
    closed: list[ClosedBuffers] = field(default_factory=list)  # meanwhile

    def forget(self, closed: ClosedBuffers) -> None:
        """Draft no longer from buffers, nor from what was written in them.

        Of a client that has none open any more, its repository is forgotten as well.
        """
        self.buffers.close(closed.workspace, closed.keys)
        self.repository.close(closed.workspace, closed.paths)
        self.edited.forget(closed.workspace, closed.paths)
        self.pool.remove_all(Source.PREVIOUS_COMPLETION, closed.paths)
        if closed.departed:
            for texts in (self.buffers, self.repository, self.edited):
                texts.close_all(closed.departed)
            if closed.takes_all_of(self.workspace):
                self.workspace = _NOBODYS

    def is_of_all(self, closed: ClosedBuffers) -> bool:
        """Whether all that it holds is to be forgotten, what it learned from token to token too."""
        return closed.is_all and closed.takes_all_of(self.workspace)

    def leave(self) -> None:
        """Be idle: what was put off may be done."""
        self.is_taken = False
        while self.closed:
            self.forget(self.closed.pop())
        if self.pool.wasteful:
            self.pool.compact()


class DraftStates:
    """One for each workspace, and for each of its completions that go on side by side.

    Idle ones go, those that were left longest ago first: beyond `most_tokens` in a principal's
    pools, and beyond `most` of all principals, of the one that has most.
    """

    def __init__(
        self,
        make: Callable[[str], DraftState],
        most: int = MOST_STATES,
        most_tokens: int = _MOST_TOKENS,
    ) -> None:
        self._make = make
        self._most, self._most_tokens = most, most_tokens
        self._states: list[DraftState] = []  # the one that was left last comes last

    def pool_tokens(self, principal: str = "") -> int:
        """Tokens that a principal's drafts are found in; without a name, all. Any thread may ask."""
        states = list(self._states)
        return sum(len(one.pool) for one in states if not principal or one.principal == principal)

    @contextmanager
    def take(self, workspace: str, principal: str = "") -> Iterator[DraftState]:
        """Have a state for oneself: the workspace's own, one that is left over, or a new one."""
        state = self._idle(workspace, principal)
        state.workspace, state.is_taken = workspace, True
        try:
            yield state
        finally:
            is_over = any(state.is_of_all(one) for one in state.closed)
            state.leave()
            self._states.remove(state)
            if not is_over:
                self._states.append(state)
            self._shed(principal)

    def forget(self, closed: ClosedBuffers) -> None:
        """Draft no longer from buffers; where a completion is under way, as soon as it is over."""
        own = [state for state in self._states if state.principal == closed.principal]
        for state in own:
            if state.is_taken:
                state.closed.append(closed)
            elif state.is_of_all(closed):
                self._states.remove(state)
            else:
                state.forget(closed)

    def forget_completions(self) -> None:
        """Draft no longer from completions written before."""
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
        """Drop idle states of a principal whose pools have grown too large together."""
        own = [one for one in self._states if one.principal == principal]
        num_tokens = sum(len(one.pool) for one in own)
        for one in own[:-1]:
            if num_tokens > self._most_tokens and not one.is_taken:
                self._states.remove(one)
                num_tokens -= len(one.pool)

    def _make_room(self) -> None:
        """Drop idle states for one more: each takes some megabytes, whatever it holds."""
        while len(self._states) >= self._most:
            idle = [state for state in self._states if not state.is_taken]
            if not idle:
                return
            num_of = Counter(state.principal for state in self._states)
            self._states.remove(max(idle, key=lambda state: num_of[state.principal]))
