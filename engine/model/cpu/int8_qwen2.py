"""Qwen2 with 8-bit weights on the CPU, around the compiled forward pass."""

from collections.abc import Mapping

import numpy as np
import torch

from engine.errors import ModelCorruptError
from engine.model.causal_lm import StepInput
from engine.model.cpu.positions import KVSlot, Rotary
from engine.model.eager import EagerModel, Logits
from engine.model.model_config import ModelConfig
from engine.model.token_tree import MAX_ROWS
from engine.progress import Progress, shown_if_long
from kernels.cpu_forward import BLOCK, ForwardInput, Linear, Matrix, Model, Runner, pack, slot_width


class Int8Qwen2(EagerModel):
    """An int8 model, packed by `engine.model.loading.packing.pack_int8`."""

    device = "cpu"
    dtype_name = "int8"

    def __init__(self, config: ModelConfig, tensors: Mapping[str, torch.Tensor]) -> None:
        self.config = config
        self.vocab_size = config.vocab_size
        self.max_context = config.max_position
        # A numpy view, since torch operations release the interpreter lock and wait to regain it.
        self._embedding = tensors["embedding"].numpy()
        self._rotary = Rotary(config, np.dtype(np.float32))
        self.weights = _read_model(config, tensors)
        # Allocating in each step would cost more than writing the logits.
        self._logits = np.empty((MAX_ROWS, config.vocab_size), np.float32)
        self._peaks = np.empty((MAX_ROWS, -(-config.vocab_size // BLOCK)), np.float32)
        threads = torch.get_num_threads()
        self.runner = Runner(self.weights, config.hidden_size, MAX_ROWS, threads)

    def compile(self, progress: Progress) -> None:
        """Compile the pass for this processor unless an earlier start has."""
        task = "compiling for this processor, once on this machine, about half a minute"
        shown_if_long(progress, task, self.runner.compile)

    def new_slot(self, capacity: int) -> KVSlot:
        """Return an empty slot for `capacity` tokens."""
        return KVSlot(self.config, capacity, torch.float32, slot_width(self.config.head_dim))

    def _forward(self, step: StepInput) -> Logits:
        tree, slot = step.tree, step.slot
        cosines, sines = self._rotary.at(tree.depths + slot.length)
        num_scored = tree.num_rows if step.has_head else 0
        work = ForwardInput(
            num_rows=tree.num_rows,
            length=slot.length,
            sees=tree.ancestors,
            cosines=cosines,
            sines=sines,
            keys=slot.keys.numpy(),
            values=slot.values.numpy(),
            logits=self._logits[:num_scored],
            peaks=self._peaks[:num_scored],
        )
        embeddings = self._embedding[tree.token_ids]
        self.runner.run(embeddings, work)
        return Logits(torch.from_numpy(work.logits), work.peaks)


def _read_model(config: ModelConfig, tensors: Mapping[str, torch.Tensor]) -> Model:
    def matrix(part: str, *, paired: bool = False) -> Matrix:
        names = [f"layers.{layer}.{part}" for layer in range(config.num_layers)]
        return pack([_linear(tensors, name) for name in names], paired=paired)

    head = pack([_linear(tensors, "head")])
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
        gate_up=matrix("gate_up", paired=True),
        down=matrix("down"),
        head=head,
    )


def _linear(tensors: Mapping[str, torch.Tensor], name: str) -> Linear:
    bias = tensors.get(f"{name}.bias")
    return Linear(
        weight=tensors[f"{name}.weight"].numpy(),
        scale=tensors[f"{name}.scale"].numpy(),
        bias=None if bias is None else bias.numpy(),
    )
