"""Slots that keep the keys and values of prompts, so that a similar prompt pays for its end."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from engine.common_start import common_start
from engine.errors import NoSpaceError
from engine.model.causal_lm import CacheSlot, CausalModel
from engine.model.token_tree import MAX_ROWS

_CAPACITY_STEP = 512  # slots grow in these steps, lest each longer prompt ask for a new one


@dataclass(slots=True, eq=False)
class _Entry:
    slot: CacheSlot
    held: list[int] = field(default_factory=list)  # the tokens of its keys, perhaps fewer
    neighbours: frozenset[str] = frozenset()  # whose text is among them, by path
    is_leased: bool = False
    is_unwanted: bool = False  # once it is idle, nothing that it holds is to be used

    def release(self) -> None:
        """It is idle from now on."""
        self.is_leased = False
        if self.is_unwanted:
            self.held, self.is_unwanted = [], False


@dataclass(frozen=True, slots=True)
class CacheLease:
    """A slot that is its user's alone until `close`; it holds the prompt's first `reused` tokens."""

    token_ids: Sequence[int]
    reused: int
    _entry: _Entry

    @property
    def slot(self) -> CacheSlot:
        """Where the keys and values are."""
        return self._entry.slot

    @property
    def unread(self) -> Sequence[int]:
        """The next piece of the prompt that is to be read; empty at its end."""
        return self.token_ids[self.slot.length : self.slot.length + MAX_ROWS]

    def commit_read(self, num_tokens: int) -> None:
        """So many tokens of the prompt were read: the last step's rows."""
        self._entry.held += self.token_ids[self.slot.length : self.slot.length + num_tokens]
        self.slot.commit(range(num_tokens))

    def commit_written(self, token_ids: Sequence[int]) -> None:
        """The slot holds the prompt and what was written behind it, as far as that is committed."""
        self._entry.held = [*self.token_ids, *token_ids][: self.slot.length]

    def spoil(self) -> None:
        """A step failed: nobody knows what the slot holds, and nobody is to build on it."""
        self._entry.is_unwanted = True

    def close(self) -> None:
        """Let others have the slot."""
        self._entry.release()


class PromptCache:
    """One slot for each key, the least recently used ones dropped beyond `max_bytes`.

    A prompt starts from the longest beginning that any slot holds: where that is another's, it is
    copied. A slot in use stays, whatever its size; who asks for its key meanwhile gets another.
    """

    def __init__(self, model: CausalModel, max_bytes: int) -> None:
        self._model = model
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    @property
    def num_bytes(self) -> int:
        """Memory of all slots."""
        return sum(entry.slot.num_bytes for entry in self._entries.values())

    def forget(self, scope: str, keys: Collection[str], paths: Collection[str]) -> None:
        """Use no longer what these keys hold, nor what holds text of `paths`.

        Of the keys that begin with `scope` that is: other folders have files of these paths, too.
        """
        for key, entry in list(self._entries.items()):
            if key.startswith(scope) and (key in keys or not entry.neighbours.isdisjoint(paths)):
                if entry.is_leased:
                    entry.is_unwanted = True
                else:
                    del self._entries[key]

    def lease(
        self,
        key: str,
        token_ids: Sequence[int],
        room: int,
        neighbours: Collection[str] = (),
    ) -> CacheLease | None:
        """Lease a slot with space for `token_ids` and `room` tokens more.

        None while memory is reserved ahead and slots in use have all of it; raises NoSpaceError
        where the prompt is too long for all of it. `neighbours` are the paths whose text is in the
        prompt.
        """
        try:
            entry, kept = self._begin(key, list(token_ids), len(token_ids) + room)
        except NoSpaceError:
            if not any(entry.is_leased for entry in self._entries.values()):
                raise
            return None
        entry.is_leased, entry.neighbours = True, frozenset(neighbours)
        return CacheLease(token_ids, kept, entry)

    def _begin(self, key: str, token_ids: list[int], capacity: int) -> tuple[_Entry, int]:
        """Bring the longest beginning that is held into the key's slot."""
        entry = self._fitting(key, capacity) or self._made(capacity, self._longest(token_ids))
        source = self._entries.get(self._longest(token_ids))
        kept = 0 if source is None else common_start(source.held, token_ids)
        own = common_start(entry.held, token_ids)
        entry.held = []  # not what a copy that fails may have written over
        if source is not None and kept > own:
            entry.slot.copy_from(source.slot, kept)
        else:
            kept = own
            entry.slot.truncate(kept)
        entry.held = token_ids[:kept]
        self._place(key, entry)
        return entry, kept

    def _longest(self, token_ids: list[int]) -> str:
        """The key of the slot that holds most of a beginning of `token_ids`."""
        return max(
            self._entries,
            key=lambda key: common_start(self._entries[key].held, token_ids),
            default="",
        )

    def _fitting(self, key: str, capacity: int) -> _Entry | None:
        """The key's slot, where it is idle and large enough."""
        entry = self._entries.get(key)
        is_fit = entry is not None and not entry.is_leased and entry.slot.capacity >= capacity
        return entry if is_fit else None

    def _made(self, capacity: int, spared: str) -> _Entry:
        """Make a slot; where memory is reserved ahead in the place of idle ones, `spared` last.

        Nobody may hold an entry meanwhile: a slot's memory is free once nobody knows it.
        """
        capacity = -(-capacity // _CAPACITY_STEP) * _CAPACITY_STEP
        while True:
            try:
                return _Entry(self._model.new_slot(capacity))
            except NoSpaceError:
                idle = [key for key, entry in self._entries.items() if not entry.is_leased]
                if not idle:
                    raise
                del self._entries[next((key for key in idle if key != spared), idle[0])]

    def _place(self, key: str, entry: _Entry) -> None:
        """Make the entry the latest, and drop the oldest ones while all are too large."""
        self._entries[key] = entry
        self._entries.move_to_end(key)
        for other in list(self._entries):
            if self.num_bytes <= self._max_bytes:
                break
            if other != key and not self._entries[other].is_leased:
                del self._entries[other]
