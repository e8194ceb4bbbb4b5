"""What a step puts out."""

from dataclasses import dataclass

import torch

TOP = 8  # tokens of a row that are kept for later drafts


@dataclass(frozen=True, slots=True)
class AcceptanceOutput:
    """`chosen` int32 [R], `margins` float32 [R], `top` int32 [R, 8], `accepted` int32 [S], `path` int32 [S, R].

    See the package for what they hold.
    """

    chosen: torch.Tensor
    margins: torch.Tensor
    top: torch.Tensor
    accepted: torch.Tensor
    path: torch.Tensor
