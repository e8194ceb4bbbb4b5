"""How the work of batch attention is cut, and the memory that takes."""

from kernels.batch import ROW_TILE
from kernels.scratch import ScratchSize

_PROGRAMS = 128  # of one row block over all heads: about one per multiprocessor of a large GPU


def num_splits(kv_heads: int) -> int:
    """Shares of a text's key tiles: a power of two that comes from the model alone.

    A row's bits depend on it, so neither the rows nor the text's length may have a say.
    """
    return 1 << max(1, _PROGRAMS // kv_heads).bit_length() - 1


def scratch_size(num_blocks: int, kv_heads: int, head_dim: int) -> ScratchSize:
    """What `num_blocks` row blocks take: of each head and split the sums, maxima and totals."""
    programs = num_blocks * kv_heads
    share = ROW_TILE * (head_dim + 2)
    return ScratchSize(programs * num_splits(kv_heads) * share, 0)
