"""When a number is right beside PyTorch's, and when two are the same to the bit."""

import torch

from engine.model.gpu.selfcheck.cases import Tensors

# Of a number itself, and of the root mean square of its row: what stays small beside its
# neighbours was rounded where they were added up. A single input of 16,000 that is left out or
# taken twice moves a sum by 2^-7 of that.
_OF_NUMBER, _OF_ROW = 2.0**-7, 2.0**-6
_CLOSE_CHOICES = 2.0**-10  # of whole numbers: which of two tokens is the best may be a rounding


def wrongness(found: Tensors, expected: Tensors) -> str:
    """What differs by more than rounding explains, in a phrase; empty where nothing does."""
    for name, right in expected.items():
        values = found[name]
        if not right.dtype.is_floating_point:
            share = float((values != right).float().mean())
            if share > _CLOSE_CHOICES:
                return f"{name}: {share:.1%} are others than PyTorch's"
        elif (excess := _excess(values, right)) != 0.0:
            return f"{name} differ from PyTorch's by {excess:.2g} times what rounding explains"
    return ""


def _excess(values: torch.Tensor, right: torch.Tensor) -> float:
    """The largest error in units of what is allowed; 0 where all are within, nan where one is."""
    one, other = values.float(), right.float()
    across = tuple(range(1, right.dim())) or (0,)
    rms = other.nan_to_num(0, 0, 0).square().mean(dim=across, keepdim=True).sqrt()
    allowed = _OF_NUMBER * other.abs() + _OF_ROW * rms
    error = torch.where(one == other, 0.0, (one - other).abs() / allowed)
    worst = float(error.nan_to_num(nan=torch.inf).max()) if error.numel() else 0.0
    return worst if worst > 1.0 else 0.0


def changed(one: Tensors, other: Tensors) -> str:
    """The name of what has other bits; empty where nothing has."""
    for name, values in one.items():
        if not torch.equal(_bits(values), _bits(other[name])):
            return name
    return ""


_WHOLE = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def _bits(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().view(_WHOLE[values.element_size()])
