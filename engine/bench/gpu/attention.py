"""Attention of a token tree, ours against torch's with a mask, and under stress."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch.nn.functional import scaled_dot_product_attention

from engine.bench.gpu.cases import Cases, Notes, measure_cases
from engine.bench.gpu.machine import Bandwidth, Machine, Work
from engine.bench.gpu.products import us_per_launch
from engine.bench.gpu.shapes import Shape, drafted_tree, packed_tree
from engine.bench.gpu.stress import Stress, stressed
from engine.model.token_tree import TokenTree
from engine.progress import Progress
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
        self.machine, self.tree, self.context = machine, drafted_tree(rows), context
        self.heads, self.kv_heads, self.dim = config.num_heads, config.num_kv_heads, config.head_dim
        self.group = self.heads // self.kv_heads
        positions = -(-(context + rows) // 64) * 64
        probe = machine.random(1).element_size()
        self.layer_bytes = 2 * self.kv_heads * (context + rows) * self.dim * probe
        cache = (machine.copies(self.layer_bytes), self.kv_heads, positions, self.dim)
        self.keys, self.values = machine.random(*cache), machine.random(*cache)
        self.queries = machine.random(rows, self.heads, self.dim)
        self.out = torch.empty_like(self.queries)
        self.batch = packed_tree(config, rows, context, machine).batch
        size = scratch_size(self.batch.num_blocks, self.kv_heads, self.dim)
        self.scratch = Scratch.allocate(*size, machine.device)
        self.attend = operations_for(machine.device).batch_attention

    @property
    def layers(self) -> int:
        """Caches that take turns."""
        return self.keys.shape[0]

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

        return self._us(work)

    def torch_us(self, notes: Notes) -> float | None:
        """Duration of torch's faster way, None where it has none."""
        found = []
        for name, repeats in (("shared heads", 1), ("repeated heads", self.group)):
            with notes.catching(f"SDPA with {name}"):
                found.append(self._us(self._torch_work(repeats)))
            self.machine.release()
        return min(found, default=None)

    def _torch_work(self, repeats: int) -> Work:
        mask = tree_mask(self.tree, self.context).to(self.machine.device)[None, None]
        heads = self.kv_heads * repeats
        shape = (self.layers, 1, heads, mask.shape[-1], self.dim)
        keys, values = self.machine.random(*shape), self.machine.random(*shape)
        queries = self.machine.random(1, self.heads, self.tree.num_rows, self.dim)
        is_shared = heads != self.heads

        def work() -> None:
            for key, value in zip(keys, values, strict=True):
                scaled_dot_product_attention(
                    queries, key, value, attn_mask=mask, enable_gqa=is_shared
                )

        return work

    def _us(self, work: Work) -> float:
        return us_per_launch(self.machine, work, self.layers)


def tree_mask(tree: TokenTree, context: int) -> torch.Tensor:
    """Which keys each row of a tree sees, bool [rows, keys]."""
    return key_mask(torch.from_numpy(tree.ancestors), context)


def key_mask(seen: torch.Tensor, context: int) -> torch.Tensor:
    """Put the text before the rows that each row sees, and pad to what torch's kernels like."""
    rows = len(seen)
    keys = -(-(context + rows) // _ALIGNED) * _ALIGNED
    mask = torch.zeros(rows, keys, dtype=torch.bool)
    mask[:, :context] = True
    mask[:, context : context + rows] = seen
    return mask


def measure_attention(
    machine: Machine,
    bandwidth: Bandwidth,
    shape: Shape,
    cases: Sequence[tuple[int, int]],
    launches: int,
    progress: Progress,
) -> Attention:
    """Time cases of (rows, context), then repeat the widest over and over."""
    notes, stress = Notes(), Stress(0, 0)
    timed = (
        (
            f"{rows} rows behind {context} tokens",
            _time(machine, bandwidth, shape, rows, context, notes),
        )
        for rows, context in cases
    )
    found = measure_cases(machine, "timing attention", len(cases), timed, progress, notes)
    rows, context = cases[-1]
    with notes.catching("repeated launches"):
        stress = AttentionCase(machine, shape, rows, context).stressed(launches)
    return Attention(found.cases, tuple(notes), stress)


def _time(
    machine: Machine, bandwidth: Bandwidth, shape: Shape, rows: int, context: int, notes: Notes
) -> Iterator[AttentionTime]:
    case = AttentionCase(machine, shape, rows, context)
    ours_us, torch_us = case.ours_us(), case.torch_us(notes)
    yield AttentionTime(
        shape=shape.name,
        rows=rows,
        context=context,
        ours_us=ours_us,
        share_of_bandwidth=1000 * bandwidth.floor_ms(case.layer_bytes) / ours_us,
        torch_us=torch_us,
        torch_over_ours=None if torch_us is None else torch_us / ours_us,
    )
