"""Slots that keep the keys and values of prompts, so a similar prompt pays only for its end."""

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from engine.common_start import common_start
from engine.errors import NoSpaceError
from engine.model.causal_lm import CacheSlot, CausalModel, piece_rows
from engine.request import ClosedBuffers
from engine.standing_prompt import StandingPrompt

_PRESENT_S = 600.0  # seconds that a principal keeps its share of the memory after its last prompt
_LATELY_S = 120.0  # seconds in which a user may come back to another file and find its prompt read
_CAPACITY_STEP = 512  # tokens that slots grow by, as else each longer prompt needs a new slot


class CacheKey(NamedTuple):
    """The principal and the key of a document's prompt; `is_spare`: of its next layout."""

    principal: str
    key: str
    is_spare: bool = False


@dataclass(slots=True, eq=False)
class _Entry:
    slot: CacheSlot
    used_at: float = 0.0
    held: list[int] = field(default_factory=list)  # tokens that the slot holds, perhaps fewer
    neighbours: frozenset[str] = frozenset()  # paths of the files shown in them
    standing: StandingPrompt | None = None
    is_leased: bool = False
    is_unwanted: bool = False  # forgets what it holds once it is idle


@dataclass(frozen=True, slots=True)
class CacheLease:
    """Exclusive use of a slot until `close`; it holds the prompt's first `reused` tokens."""

    token_ids: Sequence[int]
    reused: int
    _most_rows: int
    _entry: _Entry
    _trim: Callable[[], None]

    @property
    def slot(self) -> CacheSlot:
        """The slot with the keys and values."""
        return self._entry.slot

    @property
    def unread(self) -> Sequence[int]:
        """The next piece of the prompt to read; empty at its end."""
        start = self.slot.length
        rows = piece_rows(len(self.token_ids) - start, self._most_rows)
        return self.token_ids[start : start + rows]

    def commit_read(self, num_tokens: int) -> None:
        """Commit the last step's rows, `num_tokens` tokens of the prompt."""
        self._entry.held += self.token_ids[self.slot.length : self.slot.length + num_tokens]
        self.slot.commit(range(num_tokens))

    def commit_written(self, token_ids: Sequence[int]) -> None:
        """Record the prompt and the written tokens, as far as the slot has committed them."""
        self._entry.held = [*self.token_ids, *token_ids][: self.slot.length]

    def spoil(self) -> None:
        """Discard the slot's contents, which a failed step leaves unknown."""
        self._entry.is_unwanted = True

    def close(self) -> None:
        """Release the slot."""
        self._entry.is_leased = False
        if self._entry.is_unwanted:
            self._entry.held, self._entry.standing, self._entry.is_unwanted = [], None, False
        self._trim()


class PromptCache:
    """One slot for each key; beyond `max_bytes` the least recently used ones go.

    A prompt starts from a copy of the longest beginning in its principal's slots. While a key's
    slot is in use, another request gets a new one. Recent principals share the memory equally, and
    use more while nobody else needs it.
    """

    def __init__(
        self, model: CausalModel, max_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._model = model
        self._max_bytes = max_bytes
        self._clock = clock
        self._entries: OrderedDict[CacheKey, _Entry] = OrderedDict()

    def num_bytes(self, principal: str = "") -> int:
        """Return the bytes of one principal's slots, or of all if unnamed. Safe from any thread."""
        entries = list(self._entries.items())
        return sum(
            one.slot.num_bytes
            for key, one in entries
            if not principal or key.principal == principal
        )

    def forget(self, closed: ClosedBuffers) -> None:
        """Forget the prompts of closed buffers and the prompts that show them."""
        for key, entry in self._of(closed.principal):
            if key.key.startswith(closed.cache_scope) and (
                closed.is_all
                or key.key in closed.cache_keys
                or not entry.neighbours.isdisjoint(closed.paths)
            ):
                if entry.is_leased:
                    entry.is_unwanted = True
                else:
                    del self._entries[key]

    def lease(
        self,
        key: str,
        token_ids: Sequence[int],
        room: int,  # tokens behind `token_ids`
        neighbours: Collection[str] = (),  # paths of the files in the prompt
        principal: str = "",
        standing: StandingPrompt | None = None,
        next_rows: int = 0,  # of a piece, to read the document's next layout beside the present one
    ) -> CacheLease | None:
        """Lease a slot; None while the memory is in use. Raises NoSpaceError if it is too small."""
        cache_key = CacheKey(principal, key, next_rows > 0)
        try:
            entry, kept = self._begin(cache_key, list(token_ids), len(token_ids) + room)
        except NoSpaceError:
            if not any(entry.is_leased for entry in self._entries.values()):
                raise
            return None
        entry.is_leased, entry.neighbours = True, frozenset(neighbours)
        entry.standing = None if cache_key.is_spare else standing
        most_rows = next_rows or self._model.most_read_rows
        return CacheLease(token_ids, kept, most_rows, entry, partial(self._trim, cache_key))

    def standing(self, principal: str = "") -> Iterator[StandingPrompt]:
        """Yield the prompts for which a principal's slots were leased, the latest first."""
        for key, entry in reversed(self._entries.items()):
            is_its_own = key.principal == principal and not entry.is_unwanted
            if is_its_own and entry.standing is not None:
                yield entry.standing

    def unread(self, token_ids: Sequence[int], principal: str = "") -> int:
        """Count the tokens of a prompt behind the longest beginning in its principal's slots."""
        ids = list(token_ids)
        longest = self._longest(principal, ids)
        return len(ids) - (common_start(self._entries[longest].held, ids) if longest else 0)

    def fits_next(self, key: str, num_tokens: int, principal: str = "") -> bool:
        """Whether a document's next layout leaves room for prompts of others used lately."""
        spare = CacheKey(principal, key, is_spare=True)
        present = self._entries.get(CacheKey(principal, key))
        if present is None:
            return False
        wanted = num_tokens * present.slot.num_bytes / max(1, len(present.held))
        lately = self._clock() - _LATELY_S
        kept = sum(
            entry.slot.num_bytes
            for other, entry in self._entries.items()
            if other != spare and (entry is present or entry.used_at >= lately)
        )
        return kept + wanted <= self._max_bytes

    def _of(self, principal: str) -> list[tuple[CacheKey, _Entry]]:
        return [one for one in self._entries.items() if one[0].principal == principal]

    def _begin(self, key: CacheKey, token_ids: list[int], capacity: int) -> tuple[_Entry, int]:
        """Copy the longest held beginning of `token_ids` into the key's slot."""
        longest = self._longest(key.principal, token_ids)
        if longest == key._replace(is_spare=True) and not self._entries[longest].is_leased:
            self._entries[key] = self._entries.pop(longest)
            longest = key
        entry = self._fitting(key, capacity) or self._made(key, capacity, longest)
        longest = self._longest(key.principal, token_ids)  # making room may have evicted it
        source = None if longest is None else self._entries[longest]
        kept = 0 if source is None else common_start(source.held, token_ids)
        own = common_start(entry.held, token_ids)
        entry.held = []  # a copy that fails may have overwritten it
        if source is not None and kept > own:
            entry.slot.copy_from(source.slot, kept)
        else:
            kept = own
            entry.slot.truncate(kept)
        entry.held = token_ids[:kept]
        self._place(key, entry)
        return entry, kept

    def _longest(self, principal: str, token_ids: list[int]) -> CacheKey | None:
        """The key of the principal's slot with the longest beginning of `token_ids`."""
        longest, most = None, -1
        for key, entry in self._of(principal):
            # A longer match has the next token, too (at first none); few other documents do.
            following = slice(most, most + 1)
            if entry.held[following] == token_ids[following]:
                kept = common_start(entry.held, token_ids)
                if kept > most:
                    longest, most = key, kept
        return longest

    def _fitting(self, key: CacheKey, capacity: int) -> _Entry | None:
        entry = self._entries.get(key)
        is_fit = entry is not None and not entry.is_leased and entry.slot.capacity >= capacity
        return entry if is_fit else None

    def _made(self, key: CacheKey, capacity: int, spared: CacheKey | None) -> _Entry:
        """Make a slot, evicting idle ones if need be, `spared` last."""
        capacity = -(-capacity // _CAPACITY_STEP) * _CAPACITY_STEP
        while True:
            try:
                return _Entry(self._model.new_slot(capacity))
            except NoSpaceError:
                idle = self._evictable(key.principal) or self._last_resort()
                if not idle:
                    raise
                # No variable may hold an entry: its memory is freed with the last reference.
                del self._entries[next((one for one in idle if one != spared), idle[0])]

    def _place(self, key: CacheKey, entry: _Entry) -> None:
        entry.used_at = self._clock()
        self._entries[key] = entry
        for one in (key._replace(is_spare=not key.is_spare), key):
            if one in self._entries:
                self._entries.move_to_end(one)
        self._trim(key)

    def _trim(self, key: CacheKey) -> None:
        """Evict idle slots beyond the memory, but not that of `key`."""
        while self.num_bytes() > self._max_bytes:
            idle = [one for one in self._evictable(key.principal) if one != key]
            if not idle:
                break
            del self._entries[idle[0]]

    def _evictable(self, principal: str) -> list[CacheKey]:
        """Idle slots to evict for `principal`: its own and those of principals beyond their share.

        Slots of absent principals come first, then those of the principal that holds most.
        """
        num_bytes, used_at = Counter[str](), dict[str, float]()
        for key, entry in self._entries.items():  # the latest comes last
            num_bytes[key.principal] += entry.slot.num_bytes
            used_at[key.principal] = entry.used_at
        absent = {one for one, at in used_at.items() if self._clock() - at >= _PRESENT_S}
        absent.discard(principal)
        share = self._max_bytes / len({principal, *used_at} - absent)
        urgency = {
            one: math.inf if one in absent else num_bytes[one]
            for one in used_at
            if one in absent or one == principal or num_bytes[one] > share
        }
        idle = [key for key in self._idle() if key.principal in urgency]
        return sorted(idle, key=lambda key: -urgency[key.principal])

    def _last_resort(self) -> list[CacheKey]:
        """All slots if none is in use: else fragmented memory would never make room."""
        idle = self._idle()
        return idle if len(idle) == len(self._entries) else []

    def _idle(self) -> list[CacheKey]:
        return [key for key, entry in self._entries.items() if not entry.is_leased]
