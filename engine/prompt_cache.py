"""Slots that keep the keys and values of prompts, so that a similar prompt pays for its end."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.model.causal_lm import MAX_ROWS, CacheSlot, CausalModel

_CAPACITY_STEP = 512  # slots grow in these steps, lest each longer prompt ask for a new one


class Entered(NamedTuple):
    """A slot that holds a prompt, and how many of its tokens did not have to be read."""

    slot: CacheSlot
    reused: int


@dataclass(slots=True)
class _Entry:
    slot: CacheSlot
    held: list[int] = field(default_factory=list)  # the tokens of its keys, perhaps fewer


class PromptCache:
    """One slot for each key, the least recently used ones dropped beyond `max_bytes`.

    A prompt starts from the longest beginning that any slot holds: where that is another's, it is
    copied. The slot in use stays, whatever its size.
    """

    def __init__(self, model: CausalModel, max_bytes: int) -> None:
        self._model = model
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    @property
    def num_bytes(self) -> int:
        """Memory of all slots."""
        return sum(entry.slot.num_bytes for entry in self._entries.values())

    def enter(
        self, key: str, token_ids: Sequence[int], room: int, cancelled: Callable[[], bool]
    ) -> Entered | None:
        """Commit `token_ids` and return their slot with space for `room` tokens more.

        Asks `cancelled` every 128 tokens; None when it says so, and what was done stays.
        """
        entry, kept = self._begin(key, token_ids, len(token_ids) + room)
        for start in range(kept, len(token_ids), MAX_ROWS):
            if cancelled():
                return None
            piece = token_ids[start : start + MAX_ROWS]
            entry.slot.prefill(piece)
            entry.held += piece
        return Entered(entry.slot, kept)

    def keep(self, key: str, token_ids: Sequence[int]) -> None:
        """Tell what the slot of `key` holds since it was entered, as far as it is committed."""
        entry = self._entries[key]
        entry.held = list(token_ids[: entry.slot.length])

    def _begin(self, key: str, token_ids: Sequence[int], capacity: int) -> tuple[_Entry, int]:
        """Bring the longest beginning that is held into the key's slot."""
        source = max(
            self._entries.values(),
            key=lambda entry: _common_prefix(entry.held, token_ids),
            default=None,
        )
        entry = self._entries.get(key)
        if entry is None or entry.slot.capacity < capacity:
            capacity = -(-capacity // _CAPACITY_STEP) * _CAPACITY_STEP
            entry = _Entry(self._model.new_slot(capacity))
        kept = 0 if source is None else _common_prefix(source.held, token_ids)
        own = _common_prefix(entry.held, token_ids)
        if source is not None and kept > own:
            entry.slot.copy_from(source.slot, kept)
        else:
            kept = own
            entry.slot.truncate(kept)
        entry.held = list(token_ids[:kept])
        self._place(key, entry)
        return entry, kept

    def _place(self, key: str, entry: _Entry) -> None:
        """Make the entry the latest, and drop the oldest ones while all are too large."""
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > 1 and self.num_bytes > self._max_bytes:
            self._entries.popitem(last=False)


def _common_prefix(held: Sequence[int], wanted: Sequence[int]) -> int:
    for index, (one, other) in enumerate(zip(held, wanted, strict=False)):
        if one != other:
            return index
    return min(len(held), len(wanted))
