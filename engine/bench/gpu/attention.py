"""Attention of a token tree, ours against torch's with a mask, and under stress."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.machine import Bandwidth, Machine
from engine.bench.gpu.shapes import BRANCH, Shape, packed_tree
from engine.bench.gpu.stress import Stress, stressed
from kernels.batch_attention import scratch_size
from kernels.operations import operations_for
from kernels.scratch import Scratch

_ALIGNED = 16  # keys: torch's fast kernels want the mask so


@dataclass(frozen=True, slots=True)
class AttentionTime:
    """What a launch takes. Torch's is the faster of shared and of repeated heads."""

    shape: str
    rows: int
    context: int
    ours_us: float
    share_of_bandwidth: float
    torch_us: float | None
    torch_over_ours: float | None


@dataclass(frozen=True, slots=True)
class Attention(Cases[AttentionTime]):
    """All cases, and the launches that were repeated."""

    stress: Stress = field(default_factory=lambda: Stress(0, 0))


class AttentionCase:
    """A tree of `rows` rows behind `context` tokens, and layers whose caches take turns."""

    def __init__(self, machine: Machine, shape: Shape, rows: int, context: int) -> None:
        config = shape.config
        self.machine, self.rows, self.context = machine, rows, context
        self.heads, self.kv_heads, self.dim = config.num_heads, config.num_kv_heads, config.head_dim
        self.group = self.heads // self.kv_heads
        positions = -(-(context + rows) // 64) * 64
        probe = machine.random(1).element_size()
        self.layer_bytes = 2 * self.kv_heads * (context + rows) * self.dim * probe
        self.layers = machine.copies(self.layer_bytes)
        cache = (self.layers, self.kv_heads, positions, self.dim)
        self.keys, self.values = machine.random(*cache), machine.random(*cache)
        self.queries = machine.random(rows, self.heads, self.dim)
        self.out = torch.empty_like(self.queries)
        self.batch = packed_tree(config, rows, context, machine).batch
        size = scratch_size(self.batch.num_blocks, self.kv_heads, self.dim)
        self.scratch = Scratch.allocate(*size, machine.device)
        self.attend = operations_for(machine.device).batch_attention

    def ours(self, layer: int) -> None:
        """Attend over one layer's cache."""
        keys, values = self.keys[layer], self.values[layer]
        self.attend(self.queries, keys, values, self.batch, self.scratch, self.out)

    def stressed(self, launches: int) -> Stress:
        """Launch on one cache: the second kernel must find every share that it adds up."""

        def launch() -> None:
            self.out.fill_(torch.nan)
            self.scratch.partials.fill_(torch.nan)
            self.ours(0)

        return stressed(self.machine, launch, self.out, launches)

    def ours_us(self) -> float:
        """Duration of one of our launches."""

        def work() -> None:
            for layer in range(self.layers):
                self.ours(layer)

        return self.machine.us_per_launch(work, self.layers)

    def torch_us(self, repeats: int) -> float:
        """Duration of one of torch's launches, over a cache that holds each head `repeats` times."""
        mask = branch_mask(self.rows, self.context).to(self.machine.device)
        heads = self.kv_heads * repeats
        shape = (self.layers, 1, heads, mask.shape[-1], self.dim)
        keys, values = self.machine.random(*shape), self.machine.random(*shape)
        queries = self.machine.random(1, self.heads, self.rows, self.dim)
        is_shared = heads != self.heads

        def work() -> None:
            for key, value in zip(keys, values, strict=True):
                scaled_dot_product_attention(
                    queries, key, value, attn_mask=mask, enable_gqa=is_shared
                )

        return self.machine.us_per_launch(work, self.layers)


def branch_mask(rows: int, context: int) -> torch.Tensor:
    """Which keys the rows of a drafted tree see behind a text, bool [1, 1, rows, keys].

    The text, row 0, and the rows of the same branch up to their own. Padded as torch's kernels like.
    """
    order = torch.arange(rows)
    keys = -(-(context + rows) // _ALIGNED) * _ALIGNED
    mask = torch.zeros(rows, keys, dtype=torch.bool)
    mask[:, context : context + rows] = (order[:, None] // BRANCH == order // BRANCH).tril()
    mask[:, : context + 1] = True
    return mask[None, None]


class Way(NamedTuple):
    """How long attention took by torch, and how a group's heads came by keys and values."""

    duration: float
    name: str


def fastest_way(lab: Lab, what: str, group: int, timed: Callable[[int], float]) -> Way | None:
    """Have `timed` hold each head once and once per head of its group; None where neither runs."""
    found = []
    for name, repeats in (("shared heads", 1), ("repeated heads", group)):
        with lab.catching(f"{what} {name}"):
            found.append(Way(timed(repeats), name))
        lab.machine.release()
    return min(found, default=None)


def measure_attention(
    lab: Lab, shape: Shape, cases: Sequence[tuple[int, int]], launches: int
) -> Attention:
    """Time cases of (rows, context), then repeat the widest over and over."""
    bandwidth, stress = lab.bandwidth, Stress(0, 0)
    timed = (
        (f"{rows} rows behind {context} tokens", _time(lab, bandwidth, shape, rows, context))
        for rows, context in cases
    )
    found = lab.cases("timing attention", len(cases), timed)
    rows, context = cases[-1]
    with lab.catching("repeated launches"):
        stress = AttentionCase(lab.machine, shape, rows, context).stressed(launches)
    return Attention(found.cases, lab.notes, stress)


def _time(
    lab: Lab, bandwidth: Bandwidth, shape: Shape, rows: int, context: int
) -> Iterator[AttentionTime]:
    case = AttentionCase(lab.machine, shape, rows, context)
    ours_us = case.ours_us()
    fastest = fastest_way(lab, "SDPA with", case.group, case.torch_us)
    yield AttentionTime(
        shape=shape.name,
        rows=rows,
        context=context,
        ours_us=ours_us,
        share_of_bandwidth=bandwidth.share(case.layer_bytes, ours_us),
        torch_us=fastest.duration if fastest else None,
        torch_over_ours=fastest.duration / ours_us if fastest else None,
    )
