"""The residual stream of a step's rows, with what the next norm needs of it."""

from dataclasses import dataclass

import torch

from kernels.weight import Weight


@dataclass(frozen=True, slots=True)
class ResidualStream:
    """`residual` x float32 [R, H]; `normed` [R, H]; `squares` float32 [ceil(H / 64), R].

        normed_rn = x_rn norm_weight_n,   squares_br = sum of x_rn^2 over the 64 columns n of block b

    Whoever reads `normed` divides by the root mean square, sqrt(sum of squares / H + eps): a row's
    factor is the same for all of its numbers, so it may come after the next product.
    """

    residual: torch.Tensor
    normed: torch.Tensor
    squares: torch.Tensor
    eps: float

    def projected(self, weight: Weight) -> torch.Tensor:
        """The next product by its formula, float32 [R, N].

        (normed W^T) / sqrt(sum_b squares_b / H + eps)
        """
        factors = torch.rsqrt(self.squares.sum(dim=0) / self.normed.shape[1] + self.eps)
        return self.normed.float() @ weight.dense().T * factors[:, None]
