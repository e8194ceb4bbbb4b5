"""The residual stream of a step's rows, with what the next norm needs of it."""

from dataclasses import dataclass

import torch

_BLOCK = 64  # columns that one sum of squares stands for: `BLOCK_OUTPUTS` of a product


@dataclass(frozen=True, slots=True)
class ResidualStream:
    """`residual` x float32 [R, H]; `normed` [R, H]; `squares` float32 [ceil(H / 64), R].

        normed_rn = x_rn norm_weight_n,   squares_br = sum of x_rn^2 over the 64 columns n of block b

    The next product's outputs are divided by the row's root mean square, sqrt(sum of squares / H + eps).
    """

    residual: torch.Tensor
    normed: torch.Tensor
    squares: torch.Tensor
    eps: float

    def write(self, x: torch.Tensor, norm_weight: torch.Tensor) -> None:
        """Store x float32 [R, H] and what follows from it, in PyTorch."""
        self.residual.copy_(x)
        self.normed.copy_(x * norm_weight)
        squares = x * x
        if lacking := -x.shape[1] % _BLOCK:  # else padding would be a copy
            squares = torch.nn.functional.pad(squares, (0, lacking))
        self.squares.copy_(squares.unflatten(1, (-1, _BLOCK)).sum(dim=2).T)
