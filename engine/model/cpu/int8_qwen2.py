"""Qwen2 with 8-bit weights on the CPU, around the compiled forward pass."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from engine.errors import ModelCorruptError
from engine.model.causal_lm import StepInput
from engine.model.cpu.positions import KVSlot, Rotary
from engine.model.eager import EagerModel, Logits
from engine.model.model_config import ModelConfig
from engine.model.token_tree import MAX_ROWS
from engine.progress import Progress, shown_if_long
from kernels.cpu_forward import BLOCK, ForwardInput, Matrix, Model, Runner, slot_width

_ROOM = 16  # rows that the room for logits grows by, 10 MB
_KEPT_ROWS = 64  # of a larger room, which few steps need, no more is kept


class EmbeddingRows(Protocol):
    """A table of embeddings float16, as an array or on disk."""

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        """Return the rows of these numbers."""
        ...


class Int8Qwen2(EagerModel):
    """An int8 model, packed by `pack_int8` for this processor; its weights are used where they lie."""

    device = "cpu"
    dtype_name = "int8"

    def __init__(
        self,
        config: ModelConfig,
        arrays: Mapping[str, np.ndarray],
        embedding: EmbeddingRows,
        threads: int,
    ) -> None:
        self.config = config
        self.vocab_size = config.vocab_size
        self.max_context = config.max_position
        self._embedding = embedding
        self._rotary = Rotary(config, np.dtype(np.float32))
        self.weights = _model(config, arrays)
        self._logits = self._peaks = np.empty((0, 0), np.float32)
        self.runner = Runner(self.weights, config.hidden_size, MAX_ROWS, threads)

    def compile(self, progress: Progress) -> None:
        """Compile the pass for this processor unless an earlier start has."""
        task = "compiling for this processor, once on this machine, about half a minute"
        shown_if_long(progress, task, self.runner.compile)

    def kv_bytes(self, tokens: int) -> int:
        """Return the memory that such prompts take, up to what any model's may."""
        return min(super().kv_bytes(tokens), tokens * self.new_slot(1).token_bytes)

    def new_slot(self, capacity: int) -> KVSlot:
        """Return an empty slot for `capacity` tokens."""
        return KVSlot(self.config, capacity, np.dtype(np.float32), slot_width(self.config.head_dim))

    def _forward(self, step: StepInput) -> Logits:
        tree, slot = step.tree, step.slot
        cosines, sines = self._rotary.at(tree.depths + slot.length)
        num_scored = tree.num_rows if step.has_head else 0
        self._make_room(num_scored)
        work = ForwardInput(
            num_rows=tree.num_rows,
            length=slot.length,
            sees=tree.ancestors,
            cosines=cosines,
            sines=sines,
            keys=slot.keys,
            values=slot.values,
            logits=self._logits[:num_scored],
            peaks=self._peaks[:num_scored],
        )
        embeddings = self._embedding[tree.token_ids]
        self.runner.run(embeddings, work)
        return Logits(work.logits, work.peaks)

    def _make_room(self, rows: int) -> None:
        """Have room for the logits of so many rows: new room at each step would cost more."""
        if len(self._logits) < rows or rows <= _KEPT_ROWS < len(self._logits):
            rows = -(-rows // _ROOM) * _ROOM
            self._logits = np.empty((rows, self.vocab_size), np.float32)
            self._peaks = np.empty((rows, -(-self.vocab_size // BLOCK)), np.float32)


def _model(config: ModelConfig, arrays: Mapping[str, np.ndarray]) -> Model:
    def matrix(kind: str) -> Matrix:
        return Matrix(*(arrays[f"{kind}.{field}"] for field in Matrix._fields))

    head = matrix("head")
    if not 0 <= head.scale.shape[1] - config.vocab_size < BLOCK:
        raise ModelCorruptError(
            f"the model's head does not fit its {config.vocab_size} tokens; load the model anew"
        )
    return Model(
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        num_kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        epsilon=config.rms_norm_eps,
        qkv=matrix("qkv"),
        o=matrix("o"),
        gate_up=matrix("gate_up"),
        down=matrix("down"),
        head=head,
    )
