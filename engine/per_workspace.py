"""What is kept for the workspaces of each principal from one request to the next.

A principal may be a team, and what one person was shown last should not go as another one types. A
principal's workspaces have a bounded size, and take nothing of another principal's.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from engine.request import ClosedBuffers, CompletionRequest

_MOST_WORKSPACES = 64  # of a principal: a team

_Value = TypeVar("_Value")


@dataclass(slots=True)
class _Kept(Generic[_Value]):
    value: _Value
    size: int = 0  # that it ever had: it may hold what is not asked for any more


class PerWorkspace(Generic[_Value]):
    """A value for each workspace, made when it is first asked for; not for several threads."""

    def __init__(self, make: Callable[[], _Value], most_size: int = 2**62) -> None:
        """Of a principal those that were asked for last stay, up to `most_size` in all, and the latest."""
        self._make, self._most_size = make, most_size
        self._kept: dict[str, OrderedDict[str, _Kept[_Value]]] = {}  # by principal and workspace

    def of(self, request: CompletionRequest, size: int = 0) -> _Value:
        """The value of a request's workspace, which may hold so much from now on."""
        own = self._kept.setdefault(request.principal, OrderedDict())
        kept = own.get(request.workspace)
        if kept is None:
            kept = own[request.workspace] = _Kept(self._make())
        own.move_to_end(request.workspace)
        kept.size = max(kept.size, size)
        while len(own) > 1 and (
            len(own) > _MOST_WORKSPACES or sum(one.size for one in own.values()) > self._most_size
        ):
            own.popitem(last=False)
        return kept.value

    def forget(self, closed: ClosedBuffers) -> None:
        """Drop the values that know of closed buffers."""
        own = self._kept.pop(closed.principal, OrderedDict())
        for name in list(own):
            if name == closed.workspace or closed.takes_all_of(name):
                del own[name]
        if own:
            self._kept[closed.principal] = own
