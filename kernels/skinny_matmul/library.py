"""The product by the vendor's library (cuBLAS), for shapes where it was measured to be faster."""

import torch

from kernels.weight import Weight

# (N, K) of the products that the library computes. Empty until `foregram bench gpu` has compared
# the two: an entry costs two more launches, of the copy and of the addition.
LIBRARY: frozenset[tuple[int, int]] = frozenset()
_ROWS = 128


def is_by_library(weight: Weight) -> bool:
    """Whether the table has this product; it cannot follow the rows, or their bits would."""
    return weight.quantization == "float" and (weight.num_outputs, weight.num_inputs) in LIBRARY


def library_product(inputs: torch.Tensor, weight: Weight) -> torch.Tensor:
    """inputs W^T [128, N] in the type of `inputs` [R, K]; the rows from R on are not to be used.

    Always of 128 rows, since the library picks its kernel, and so its order, by their number.
    """
    padded = inputs.new_empty(_ROWS, weight.num_inputs)
    padded[: inputs.shape[0]] = inputs
    return torch.mm(padded, weight.values.T)
