"""Values kept between requests for each workspace; a principal evicts only its own ones."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from engine.request import ClosedBuffers, CompletionRequest

_MOST_WORKSPACES = 64  # of a principal, a team: for 64 people, first text came in 10 ms, not 482

_Value = TypeVar("_Value")


@dataclass(slots=True)
class _Kept(Generic[_Value]):
    value: _Value
    size: int = 0  # the largest so far, as it may still hold data of earlier requests


class PerWorkspace(Generic[_Value]):
    """A value for each workspace, made at its first use; not thread-safe."""

    def __init__(self, make: Callable[[], _Value], most_size: int = 2**62) -> None:
        """Keep a principal's last used values up to `most_size` in all, and always the latest."""
        self._make, self._most_size = make, most_size
        self._kept: dict[str, OrderedDict[str, _Kept[_Value]]] = {}  # by principal and workspace

    def of(self, request: CompletionRequest, size: int = 0) -> _Value:
        """Return the value of a request's workspace, which may grow to `size`."""
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
