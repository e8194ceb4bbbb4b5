"""Qwen2 on a GPU as a `CausalModel`: slots share an arena, and steps run as flights."""

import weakref
from collections.abc import Sequence
from typing import Self

import numpy as np
import torch

from engine.model.causal_lm import StepInput, check_room
from engine.model.gpu.arena import KVArena
from engine.model.gpu.batch_layout import KeptRows
from engine.model.gpu.flight import GpuFlight
from engine.model.gpu.step_graphs import ROW_BUCKETS, StepGraphs


class GpuSlot:
    """A `CacheSlot`. Its next step begins by moving the rows that the last one kept.

    `base` is its first position in the arena; `kept` are the rows still to be moved.
    """

    def __init__(self, arena: KVArena, graphs: StepGraphs, capacity: int) -> None:
        """Reserve room for `capacity` tokens. Raises NoSpaceError."""
        self._arena, self._graphs, self.capacity = arena, graphs, capacity
        self.base = arena.take(capacity)
        self.num_bytes = capacity * arena.bytes_per_position
        weakref.finalize(self, arena.give_back, self.base, capacity)
        self.length = 0
        self.kept: KeptRows | None = None
        self.places = np.zeros(0, np.int64)  # of the last step's rows, relative to its first

    def launched(self, order: np.ndarray) -> None:
        """Record a launched step: kept rows are moved, and the tree's rows lie in `order`."""
        self.kept = None
        self.places = np.empty_like(order)
        self.places[order] = np.arange(len(order))

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the last step. Rows already in place are not moved."""
        offsets = self.places[np.asarray(rows, np.int64)]
        is_moved = (offsets != np.arange(len(offsets))).any()
        self.kept = KeptRows(self.length, offsets) if is_moved else None
        self.length += len(rows)

    def copy_from(self, other: Self, length: int) -> None:
        """Copy the first `length` tokens of `other`, which has as many."""
        other._move_kept()
        start, source = self.base, other.base
        with self._graphs.on_stream():
            for held in (self._arena.keys, self._arena.values):
                held[:, :, start : start + length] = held[:, :, source : source + length]
        self.length, self.kept = length, None

    def truncate(self, length: int) -> None:
        """Forget everything from position `length` on."""
        if self.kept is not None:
            offsets = self.kept.offsets[: max(0, length - self.kept.length)]
            self.kept = KeptRows(self.kept.length, offsets) if len(offsets) else None
        self.length = length

    def _move_kept(self) -> None:
        """Move the rows that the last step kept: all of them, or none if memory runs out."""
        if self.kept is None:
            return
        start, offsets = self.base + self.kept.length, torch.from_numpy(self.kept.offsets)
        with self._graphs.on_stream():
            source = start + offsets.to(self._arena.keys.device)
            rows = [held[:, :, source] for held in (self._arena.keys, self._arena.values)]
            for held, moved in zip((self._arena.keys, self._arena.values), rows, strict=True):
                held[:, :, start : start + len(offsets)] = moved
        self.kept = None  # last, so that a failed move is tried again


class GpuQwen2:
    """A `CausalModel` on a GPU, made by `engine.model.gpu.loading`."""

    found = ""  # a sentence: the result of the self-check

    def __init__(self, graphs: StepGraphs, dtype_name: str) -> None:
        sizes = graphs.sizes
        self.row_buckets, self.most_rows = sizes.rows, sizes.most_rows
        self.max_sequences = sizes.sequences[-1]
        config = graphs.forward.config
        self.vocab_size, self.max_context = config.vocab_size, config.max_position
        self.device, self.dtype_name = str(graphs.device), dtype_name
        self.graphs, self.arena = graphs, graphs.forward.arena
        self._flight = GpuFlight(graphs, ())
        self._num_beside = 0  # sequences of the latest flight, less one

    @property
    def checked(self) -> str:
        """Return what the self-check found and what degraded while steps were captured."""
        return "; ".join(filter(None, (self.found, self.graphs.note)))

    @property
    def most_read_rows(self) -> int:
        """Return the most rows of a prompt's piece: 128 if other sequences would have to wait."""
        return ROW_BUCKETS[-1] if self._num_beside > 0 else self.graphs.sizes.read_rows[-1]

    def kv_bytes(self, tokens: int) -> int:  # noqa: ARG002 - it is reserved
        """Return the memory that all slots share."""
        return self.arena.keys.nbytes + self.arena.values.nbytes

    def new_slot(self, capacity: int) -> GpuSlot:
        """Reserve room for `capacity` tokens. Raises NoSpaceError."""
        return GpuSlot(self.arena, self.graphs, capacity)

    def begin(self, steps: Sequence[StepInput]) -> GpuFlight:
        """Launch the steps. If a launch fails, the slots of its steps are unchanged."""
        check_room(steps, self.graphs.sizes.read_rows[-1])
        self._num_beside = len(steps) - 1
        self._flight.wait()  # a dropped flight may still run
        self._flight = GpuFlight(self.graphs, steps)
        self._flight.start()
        return self._flight
