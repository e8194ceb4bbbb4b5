"""The slot that keeps one prompt's keys and values, so that a similar prompt pays for its end."""

from collections.abc import Callable, Sequence

from engine.model.causal_lm import MAX_ROWS, CacheSlot, CausalModel


class PromptCache:
    """One slot of the model and the tokens that are committed in it."""

    def __init__(self, model: CausalModel) -> None:
        self._model = model
        self._slot: CacheSlot | None = None
        self._held: list[int] = []

    def enter(
        self, token_ids: Sequence[int], room: int, cancelled: Callable[[], bool]
    ) -> CacheSlot | None:
        """Commit `token_ids` and return their slot with space for `room` tokens more.

        The longest common prefix with the last prompt is kept. Asks `cancelled` every 128 tokens;
        None when it says so, and what was done stays.
        """
        slot = self._slot_for(len(token_ids) + room)
        kept = _common_prefix(self._held, token_ids)
        slot.truncate(kept)
        del self._held[kept:]
        for start in range(kept, len(token_ids), MAX_ROWS):
            if cancelled():
                return None
            piece = token_ids[start : start + MAX_ROWS]
            slot.prefill(piece)
            self._held += piece
        return slot

    def _slot_for(self, capacity: int) -> CacheSlot:
        if self._slot is None or self._slot.capacity < capacity:
            self._slot, self._held = self._model.new_slot(capacity), []
        return self._slot


def _common_prefix(held: Sequence[int], wanted: Sequence[int]) -> int:
    for index, (one, other) in enumerate(zip(held, wanted, strict=False)):
        if one != other:
            return index
    return min(len(held), len(wanted))
