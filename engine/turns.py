"""Fair queueing: principals share the engine's time evenly, and the clients of one take turns."""

import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

CREDIT_S = 2.0  # engine seconds by which a returning principal may be behind the others at most
# Principals closer than this take turns. Else one that opens a file would wait at the next keys.
ALIKE_S = 0.3
SLICE_S = 0.5  # seconds ahead at which a principal makes way; short jobs never get there
_MOST_CLIENTS = 256  # clients of one principal whose turns are remembered


@dataclass(slots=True)
class _Account:
    used_s: float = 0.0
    last_turn: int = 0  # of any client
    last_turns: OrderedDict[str, int] = field(default_factory=OrderedDict)  # by client


class Turns:
    """The accounts of all principals; not thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._charged_at = clock()
        self._num_turns = 0
        self._served_s = 0.0  # most time that a principal had used when it was served
        self._accounts = defaultdict[str, _Account](_Account)

    def arrive(self, principal: str, rivals: Iterable[str]) -> None:
        """Admit a principal that had no jobs, while `rivals` have some."""
        account = self._accounts[principal]
        least_s = min(map(self.used_s, rivals), default=0.0)
        # The last served principal counts, as else one that seldom asks saves up time without end.
        account.used_s = max(account.used_s, max(least_s, self._served_s) - CREDIT_S)

    def begin(self) -> None:
        """Start the time that `charge` counts."""
        self._charged_at = self._clock()

    def charge(self, principals: Collection[str]) -> None:
        """Charge those whose jobs ran side by side since `begin`, one entry for each job."""
        share_s = (self._clock() - self._charged_at) / max(1, len(principals))
        for principal in principals:
            self._accounts[principal].used_s += share_s
        self.begin()

    def take(self, principal: str, client: str) -> None:
        """Give a client its turn."""
        self._num_turns += 1
        account = self._accounts[principal]
        self._served_s = account.used_s = max(account.used_s, self._served_s)
        account.last_turn = self._num_turns
        turns = account.last_turns
        turns[client] = self._num_turns
        turns.move_to_end(client)
        if len(turns) > _MOST_CLIENTS:
            turns.popitem(last=False)

    def forget(self, principal: str, client: str) -> None:
        """Forget the turns of a client that has left."""
        self._accounts[principal].last_turns.pop(client, None)

    def forget_all(self, principal: str) -> None:
        """Forget a principal that has left; the next one of its name begins anew."""
        self._accounts.pop(principal, None)

    def rank(self, principal: str, client: str) -> tuple[int, int, int]:
        """Return a key to sort by; the lowest goes first."""
        account = self._accounts[principal]
        # 0 for all with credit: else a fast typist would wait until the others have used up theirs.
        ahead = max(0, int((account.used_s - self._served_s) / ALIKE_S))
        return ahead, account.last_turn, account.last_turns.get(client, 0)

    def used_s(self, principal: str) -> float:
        """Engine seconds charged to a principal."""
        return self._accounts[principal].used_s

    def is_far_behind(self, principal: str, other: str) -> bool:
        """Whether a job of `other` should make way for one of `principal`."""
        return self.used_s(other) - self.used_s(principal) > SLICE_S
