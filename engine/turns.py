"""Whose turn it is: principals share the engine's time evenly, and the clients of one take turns.

Fair queueing by the time that each principal's jobs have run. A new name of a client gains nothing
beside other principals, and a principal that did not ask for long saves up no more than `CREDIT_S`.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

# Seconds of the engine by which a principal that comes back may be behind the others at most.
CREDIT_S = 2.0
# Principals that differ by fewer seconds take turns: else one that opens a file, whose whole prompt is
# read, would wait for all others at the next keys.
ALIKE_S = 0.3
SLICE_S = 0.5  # a principal that is so many seconds ahead makes way; one with short jobs never is
_MOST_CLIENTS = 256  # clients of one principal whose turns are remembered


@dataclass(slots=True)
class _Account:
    used_s: float = 0.0
    last_turn: int = 0  # of any client
    last_turns: OrderedDict[str, int] = field(default_factory=OrderedDict)  # by client


class Turns:
    """The accounts of all principals; not for several threads at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._charged_at = clock()
        self._num_turns = 0
        self._served_s = 0.0  # the most that a principal had used when it was served
        self._accounts: dict[str, _Account] = {}

    def arrive(self, principal: str, rivals: Iterable[str]) -> None:
        """A principal without a job asks for one, while `rivals` have some."""
        account = self._account(principal)
        least_s = min(map(self.used_s, rivals), default=0.0)
        # The principal that was served last counts where none happens to wait: else one that seldom asks
        # would save up without end, and be served before all others for as long.
        account.used_s = max(account.used_s, max(least_s, self._served_s) - CREDIT_S)

    def begin(self) -> None:
        """Charge from now on."""
        self._charged_at = self._clock()

    def charge(self, principals: Collection[str]) -> None:
        """Charge those whose jobs ran side by side since `begin`, one entry for each job."""
        share_s = (self._clock() - self._charged_at) / max(1, len(principals))
        for principal in principals:
            self._account(principal).used_s += share_s
        self.begin()

    def take(self, principal: str, client: str) -> None:
        """A client has its turn."""
        self._num_turns += 1
        account = self._account(principal)
        self._served_s = account.used_s = max(account.used_s, self._served_s)
        account.last_turn = self._num_turns
        turns = account.last_turns
        turns[client] = self._num_turns
        turns.move_to_end(client)
        if len(turns) > _MOST_CLIENTS:
            turns.popitem(last=False)

    def forget(self, principal: str, client: str) -> None:
        """A client has left: when it had its last turn is not remembered."""
        self._account(principal).last_turns.pop(client, None)

    def forget_all(self, principal: str) -> None:
        """A principal has left: the next one of its name begins anew."""
        self._accounts.pop(principal, None)

    def rank(self, principal: str, client: str) -> tuple[int, int, int]:
        """The lowest comes first.

        Principals that had less than the one served last, or little more, take turns: their credit
        ends with a turn. Else the one that types most would wait until all others have used up theirs.
        """
        account = self._account(principal)
        ahead = max(0, int((account.used_s - self._served_s) / ALIKE_S))
        return ahead, account.last_turn, account.last_turns.get(client, 0)

    def used_s(self, principal: str) -> float:
        """Seconds of the engine that count for a principal."""
        return self._account(principal).used_s

    def is_far_behind(self, principal: str, other: str) -> bool:
        """Whether a job of the `other` should make way."""
        return self.used_s(other) - self.used_s(principal) > SLICE_S

    def _account(self, principal: str) -> _Account:
        account = self._accounts.get(principal)
        if account is None:
            account = self._accounts[principal] = _Account()
        return account
