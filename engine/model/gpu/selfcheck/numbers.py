"""Memory for a check: random numbers of the nodes, NaN wherever nothing is to be read or written."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from engine.model.gpu.selfcheck.companies import PackedCompany
from engine.model.token_tree import MAX_ROWS

_GUARD = 1024  # numbers of NaN before and behind a tensor
# Bits where nothing was written, by their bytes: a NaN that no arithmetic gives, in every format of
# two and of four bytes; so what writes NaN there is seen, too.
_MARKS = {2: (torch.int16, 0x7FDE), 4: (torch.int32, 0x7FDEADAD)}
_BLOCK = 64  # columns that one sum of squares stands for


@dataclass(slots=True)
class Numbers:
    """What the nodes hold, by name, the same in every company."""

    device: torch.device
    _held: dict[str, torch.Tensor] = field(default_factory=dict)

    def of_nodes(self, name: str, *shape: int) -> torch.Tensor:
        """Normal numbers, float32 [nodes, *shape]."""
        return self.drawn(name, MAX_ROWS, *shape)

    def drawn(self, name: str, *shape: int) -> torch.Tensor:
        """Normal numbers, float32, the same whenever they are asked for."""
        generator = torch.Generator().manual_seed(sum(name.encode()))
        return self.kept(name, lambda: torch.randn(shape, generator=generator).to(self.device))

    def kept(self, name: str, make: Callable[[], torch.Tensor]) -> torch.Tensor:
        """What was made under a name, made now if it is the first time."""
        if name not in self._held:
            self._held[name] = make()
        return self._held[name]


@dataclass(slots=True)
class Memory:
    """Tensors amid NaN, for one run of an operation."""

    device: torch.device
    _guarded: list[torch.Tensor] = field(default_factory=list)

    def unwritten(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        """Memory that an operation is to fill."""
        count = torch.Size(shape).numel()
        bits, mark = _MARKS[dtype.itemsize]
        size = (_GUARD + count + _GUARD,)
        held = torch.full(size, mark, dtype=bits, device=self.device).view(dtype)
        self._guarded.append(held)
        return held[_GUARD : _GUARD + count].view(shape)

    def rows(
        self, numbers: torch.Tensor, company: PackedCompany, dtype: torch.dtype
    ) -> torch.Tensor:
        """The nodes' numbers in their rows [R, ...]; rows that hold nothing are NaN."""
        held = self.unwritten(company.batch.capacity, *numbers.shape[1:], dtype=dtype)
        if dtype.is_floating_point:
            held.fill_(torch.nan)  # other bits: some processors hand on those of what they multiply
        held[company.rows] = numbers[company.nodes].to(dtype)
        return held

    @property
    def is_intact(self) -> bool:
        """Whether nothing was written beside the tensors."""
        edges = [end for held in self._guarded for end in (held[:_GUARD], held[-_GUARD:])]
        return all(map(is_unwritten, edges))


def is_unwritten(values: torch.Tensor) -> bool:
    """Whether all of it is as `unwritten` left it."""
    bits, mark = _MARKS[values.dtype.itemsize]
    return bool((values.view(bits) == mark).all())


def squares_of(rows: torch.Tensor) -> torch.Tensor:
    """What stands in `squares` for a residual stream of these rows, [ceil(H / 64), R]."""
    padded = torch.nn.functional.pad(rows.float() ** 2, (0, -rows.shape[1] % _BLOCK))
    return padded.view(len(rows), -1, _BLOCK).sum(dim=2).T.contiguous()
