"""What flows from kernel to kernel in a step of one number of rows."""

import torch

from engine.model.model_config import ModelConfig
from engine.model.token_tree import MAX_ROWS
from kernels.lm_head import Best
from kernels.product.tiles import num_blocks
from kernels.residual import ResidualStream


class Activations:
    """What flows from kernel to kernel; R rows.

    `queries` and `attended` [R, heads, d]; `mlp_hidden` [R, I].
    """

    def __init__(
        self, config: ModelConfig, rows: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        """Take the memory. It starts at zero: rows that hold nothing must be finite."""

        def numbers(*shape: int, kind: torch.dtype = dtype) -> torch.Tensor:
            return torch.zeros(shape, dtype=kind, device=device)

        hidden, heads = config.hidden_size, (rows, config.num_heads, config.head_dim)
        blocks = num_blocks(config.vocab_size)
        answered = rows if rows <= MAX_ROWS else 0  # longer steps are only read
        self.stream = ResidualStream(
            residual=numbers(rows, hidden, kind=torch.float32),
            normed=numbers(rows, hidden),
            squares=numbers(num_blocks(hidden), rows, kind=torch.float32),
            eps=config.rms_norm_eps,
        )
        self.queries, self.attended = numbers(*heads), numbers(*heads)
        self.mlp_hidden = numbers(rows, config.intermediate_size)
        self.best = Best(
            scores=numbers(blocks, answered, kind=torch.float32),
            ids=numbers(blocks, answered, kind=torch.int32),
            logits=numbers(blocks, answered, kind=torch.float32),
            maxima=numbers(blocks, answered, kind=torch.float32),
            sums=numbers(blocks, answered, kind=torch.float32),
        )

    @property
    def numbers(self) -> list[torch.Tensor]:
        """All of it but the ids."""
        stream, best = self.stream, self.best
        held = [stream.residual, stream.normed, stream.squares, self.queries, self.attended]
        held += [self.mlp_hidden, best.scores, best.logits, best.maxima, best.sums]
        return held
