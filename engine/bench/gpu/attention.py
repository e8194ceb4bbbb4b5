"""The two kernels of attention over a token tree, each alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.bench.gpu.cases import Lab
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import Shape, packed_tree
from kernels.batch_attention import scratch_size
from kernels.operations import operations_for
from kernels.scratch import Scratch


@dataclass(frozen=True, slots=True)
class AttentionParts:
    """The two kernels of attention; the share is the first one's, which reads keys and values."""

    shape: str
    rows: int
    context: int
    attend_us: float
    combine_us: float
    share_of_bandwidth: float


class AttentionCase:
    """A tree of `rows` rows behind `context` tokens, and layers whose caches take turns."""

    def __init__(self, machine: Machine, shape: Shape, rows: int, context: int) -> None:
        config, self._machine = shape.config, machine
        heads, kv_heads, dim = config.num_heads, config.num_kv_heads, config.head_dim
        positions = -(-(context + rows) // 64) * 64
        self.layer_bytes = 2 * kv_heads * (context + rows) * dim * machine.dtype.itemsize
        cache = (machine.copies(self.layer_bytes), kv_heads, positions, dim)
        self._layers = list(zip(machine.random(*cache), machine.random(*cache), strict=True))
        self._queries = machine.random(rows, heads, dim)
        self._out = torch.empty_like(self._queries)
        self._batch = packed_tree(config, rows, context, machine).batch
        size = scratch_size(self._batch.num_blocks, kv_heads, dim)
        self._scratch = Scratch.allocate(*size, machine.device)
        self.attend = operations_for(machine.device).batch_attention

    def us(self) -> float:
        """Duration of one launch."""

        def work() -> None:
            for keys, values in self._layers:
                held = (self._queries, keys, values)
                self.attend(*held, self._batch, self._scratch, self._out)

        return self._machine.us_per_launch(work, len(self._layers))


def measure_attention_parts(
    lab: Lab, shape: Shape, cases: Sequence[tuple[int, int]]
) -> tuple[AttentionParts, ...]:
    """Time attention, and its first kernel alone; elsewhere than on a GPU it is all in one."""
    return tuple(_attention_parts(lab, shape, rows, context) for rows, context in cases)


def _attention_parts(lab: Lab, shape: Shape, rows: int, context: int) -> AttentionParts:
    bandwidth, case = lab.bandwidth, AttentionCase(lab.machine, shape, rows, context)
    both_us = attend_us = case.us()
    if lab.machine.is_gpu:
        from kernels.batch_attention.triton_kernel import attend  # noqa: PLC0415 - needs Triton

        case.attend = attend
        attend_us = case.us()
    return AttentionParts(
        shape=shape.name,
        rows=rows,
        context=context,
        attend_us=attend_us,
        combine_us=both_us - attend_us,
        share_of_bandwidth=bandwidth.share(case.layer_bytes, attend_us),
    )
