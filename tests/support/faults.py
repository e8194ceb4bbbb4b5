"""PyTorch's operations in place of kernels, and faults of kernels planted into them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import torch

from kernels.operations import Operations, operations_for

Written = list[torch.Tensor]
Fault = Callable[[Written], None]
_TWINS = operations_for(torch.device("cpu"))


def _lm_head(stream: Any, *others: Any) -> None:
    """Replace NaN in padding rows, which kernels may leave: PyTorch's choice fails on it."""
    _TWINS.lm_head(replace(stream, normed=stream.normed.nan_to_num()), *others)


# They are captured and padded like kernels.
STAND_INS = replace(_TWINS, lm_head=_lm_head, asks_host=False)


@contextmanager
def in_one_order() -> Iterator[None]:
    """Make matrix products whose sums do not depend on the number of rows."""

    def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a[..., None] * b[..., None, :, :]).sum(dim=-2)

    with mock.patch.object(torch.Tensor, "__matmul__", multiply):
        yield


def planted(operation: str, fault: Fault) -> Operations:
    """Return all stand-ins, one of them with a fault in its results."""

    def faulty(*arguments: Any) -> None:
        getattr(STAND_INS, operation)(*arguments)
        fault(_written(operation, arguments))

    part: dict[str, Any] = {operation: faulty}
    return replace(STAND_INS, **part)


def _written(operation: str, arguments: tuple[Any, ...]) -> Written:
    """Return an operation's results, with rows of the step (or positions of the cache) first."""
    if operation in {"embed_rows", "skinny_matmul"}:
        stream = arguments[3]
        return [stream.residual, stream.normed, stream.squares.T]
    if operation == "lm_head":
        best = arguments[3]
        return [part.T for part in (best.scores, best.logits, best.maxima, best.sums)]
    if operation == "acceptance_walk":
        return [arguments[2].log_probs, arguments[2].chosen]
    if operation == "kv_commit":
        return [part.permute(2, 0, 1, 3) for part in arguments[:2]]
    return [arguments[{"gate_up": 2}.get(operation, 5)]]


def wrong_row(written: Written) -> None:
    """Each row gets its neighbour's values; a single row gets wrong ones."""
    for part in written:
        part.copy_(part.roll(1, 0) if len(part) > 1 else part + 1)


def wrong_order(written: Written) -> None:
    """Change the last bit from four rows on, as another order of addition would."""
    for part in written:
        if len(part) >= 4 and part.dtype.is_floating_point:
            whole = torch.int16 if part.element_size() == 2 else torch.int32
            part.copy_((part.contiguous().view(whole) + 1).view(part.dtype))


def leaking(written: Written) -> None:
    """Leak the last row, possibly padding, into the sums of all others."""
    for part in written:
        if part.dtype.is_floating_point:
            part.add_(part[-1:].clone())


def too_large(written: Written) -> None:
    """Make every number wrong, in the same way in any batch."""
    for part in written:
        part.copy_(part * 2)


@dataclass(slots=True)
class Race:
    """A fault in every third run: a number is read before it was written."""

    runs: int = 0

    def __call__(self, written: Written) -> None:
        """Replace the first number of the first row."""
        self.runs += 1
        if self.runs % 3 == 0:
            for part in written:
                part[0] = part[0] + 1
