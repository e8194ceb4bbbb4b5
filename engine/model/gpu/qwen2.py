"""Qwen2 on a GPU, as decoding knows models: slots of an arena, steps of a queue."""

import weakref
from collections.abc import Sequence
from typing import Self

import numpy as np
import torch

from engine.config import Sampling
from engine.model.gpu.arena import KVArena
from engine.model.gpu.planting import Kept, Seedling
from engine.model.gpu.step_graphs import ROW_BUCKETS, SEQUENCE_BUCKETS, StepGraphs
from engine.model.gpu.step_queue import GpuAnswer, PendingStep, StepQueue
from engine.model.step_order import FullOrder, StepOrder
from engine.model.token_tree import MAX_ROWS, TokenTree


class GpuQwen2:
    """The model. Make one with `engine.model.gpu.loading`."""

    row_buckets = ROW_BUCKETS
    num_lanes = SEQUENCE_BUCKETS[-1]

    def __init__(self, graphs: StepGraphs, dtype_name: str) -> None:
        config = graphs.forward.config
        self.vocab_size, self.max_context = config.vocab_size, config.max_position
        self.device, self.dtype_name = str(graphs.device), dtype_name
        self.graphs, self.queue = graphs, StepQueue(graphs)

    @property
    def arena(self) -> KVArena:
        """Where all slots lie."""
        return self.graphs.forward.arena

    @property
    def reserved_bytes(self) -> int:
        """Memory of the arena."""
        return self.arena.keys.nbytes + self.arena.values.nbytes

    def expect(self, num_running: int) -> None:
        """Let steps wait until so many sequences have asked for theirs."""
        self.queue.num_running = max(1, num_running)

    def new_slot(self, capacity: int) -> "GpuSlot":
        """Reserve room for `capacity` tokens. Raises NoSpaceError."""
        return GpuSlot(self, capacity)


class GpuSlot:
    """One sequence; a `SteppingSlot`. What a step keeps is moved at the start of the next one."""

    def __init__(self, model: GpuQwen2, capacity: int) -> None:
        self._model, self.capacity = model, capacity
        self._base = model.arena.take(capacity)
        weakref.finalize(self, model.arena.give_back, self._base, capacity)
        self.length = 0
        self._kept: Kept | None = None
        self._step: PendingStep | None = None
        self._places = np.zeros(0, np.int64)  # of the last step's rows

    @property
    def num_bytes(self) -> int:
        """Memory of its keys and values."""
        return self.capacity * self._model.arena.bytes_per_position

    def copy_from(self, other: Self, length: int) -> None:
        """Hold the first `length` tokens of `other`. Raises ValueError where that cannot be."""
        if not 0 <= length <= min(other.length, self.capacity):
            raise ValueError(f"cannot copy {length} of {other.length} tokens to {self.capacity}")
        other._settle()
        arena, start, source = self._model.arena, self._base, other._base

        def copy() -> None:
            for held in (arena.keys, arena.values):
                held[:, :, start : start + length] = held[:, :, source : source + length]

        self._model.graphs.on_stream(copy)
        self.length, self._kept = length, None

    def prefill(self, token_ids: Sequence[int]) -> None:
        """Commit `token_ids`, at most 128 in one pass.

        Where that fails, nobody knows what of the last step was moved: the slot is of no use.
        """
        for start in range(0, len(token_ids), MAX_ROWS):
            tree = TokenTree.chain(token_ids[start : start + MAX_ROWS])
            self._model.queue.fill(self._seedling(tree))
            self.length += tree.num_rows

    def step(self, tree: TokenTree) -> torch.Tensor:
        """Logits of every row, float32 [rows, vocab], on the CPU; nothing is committed yet."""
        self.begin(FullOrder(tree, Sampling()))
        return self.finish().logits

    def begin(self, order: StepOrder) -> None:
        """Ask for a step."""
        self._step = PendingStep(self._seedling(order.tree), order)
        try:
            self._model.queue.ask(self._step)
        except BaseException:
            self.abandon()  # or it would go along with others' steps, and write where it stood
            raise

    def finish(self) -> GpuAnswer:
        """Wait for the step that was begun. Raises ValueError where there is none."""
        if self._step is None:
            raise ValueError("no step was begun")
        answer = self._model.queue.answer(self._step)
        self._step = None  # not before: where that failed, `abandon` takes the step back
        self._places = answer.places
        return answer

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the last step."""
        self._kept = Kept(self.length, self._places[np.asarray(rows, np.int64)])
        self.length += len(rows)

    def abandon(self) -> None:
        """Forget the step that was begun."""
        if self._step is not None and self._model.queue.forget(self._step):
            self._kept = self._step.seedling.kept  # nobody has moved it
        self._step = None

    def truncate(self, length: int) -> None:
        """Forget everything from position `length` on. Raises ValueError beyond `length`."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate {self.length} tokens to {length}")
        if self._kept is not None:
            offsets = self._kept.offsets[: max(0, length - self._kept.length)]
            self._kept = Kept(self._kept.length, offsets) if len(offsets) else None
        self.length = length

    def _seedling(self, tree: TokenTree) -> Seedling:
        """Place a tree behind what is held, and hand over what is to be kept of the last one."""
        if self.length + tree.num_rows > self.capacity:
            raise ValueError(
                f"{self.length} + {tree.num_rows} tokens exceed the slot's {self.capacity}"
            )
        kept, self._kept = self._kept, None
        return Seedling(tree, self._base, self.length, kept)

    def _settle(self) -> None:
        """Move now what the last step keeps, so that others find it in its place."""
        queue, step = self._model.queue, self._step
        kept = self._kept if step is None else queue.kept(step)
        if kept is None:
            return
        self._move(kept)
        self._kept = None  # not before: where that failed, it is still to be moved
        if step is not None:
            queue.drop_kept(step)

    def _move(self, kept: Kept) -> None:
        """Move all of it, or nothing where there is no memory to do it with."""
        arena, start, count = self._model.arena, self._base + kept.length, len(kept.offsets)
        places = torch.from_numpy(start + kept.offsets)

        def move() -> None:
            source = places.to(arena.keys.device)
            rows = [held[:, :, source] for held in (arena.keys, arena.values)]
            for held, moved in zip((arena.keys, arena.values), rows, strict=True):
                held[:, :, start : start + count] = moved

        self._model.graphs.on_stream(move)
