"""Attention of a token tree inside the models of transformers.

The mask function applies the model's rule (causal, sliding window, chunks) to the positions of the
tree's rows instead of their indices. Then it hides siblings from each other.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from transformers import AttentionInterface, AttentionMaskInterface

from engine.errors import UnsupportedModelError

ATTENTION = "foregram_tree"

# Arguments of attention that need no handling here: the mask function applies the window, the
# rotary embedding the positions, and the others have no effect in inference.
_HANDLED = frozenset(
    [
        "cache_position",
        "logits_to_keep",
        "output_attentions",
        "output_hidden_states",
        "output_router_logits",
        "position_embeddings",
        "position_ids",
        "return_dict",
        "sliding_window",
        "use_cache",
    ]
)

MaskRule = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(slots=True)
class Rows:
    """The rows of the running forward pass. The counts show whether the model called us."""

    positions: torch.Tensor  # int64 [rows]
    key_positions: torch.Tensor  # int64 [keys]: the committed ones, then the rows'
    ancestors: torch.Tensor | None  # bool [rows, rows]; None for a chain
    num_masks: int = 0
    num_attentions: int = 0


# A context variable, since models pass neither positions nor the tree to the mask function.
_rows: ContextVar[Rows] = ContextVar("rows of the forward under way")


@contextmanager
def attending(rows: Rows) -> Iterator[None]:
    """Use `rows` for the forward pass inside the block."""
    token = _rows.set(rows)
    try:
        yield
    finally:
        _rows.reset(token)


def tree_mask(*, mask_function: MaskRule, use_vmap: bool = False, **_sizes: object) -> torch.Tensor:
    """Return the bool mask [1, 1, rows, keys]; True where a row attends to a key."""
    if use_vmap:
        raise UnsupportedModelError("its attention mask depends on more than positions")
    rows = _rows.get()
    rows.num_masks += 1
    queries, keys = rows.positions[None, None, :, None], rows.key_positions[None, None, None, :]
    first = torch.zeros_like(queries[:, :, :1])  # index of the only sequence, and of any head
    # Rows must never see the keys of later rows, so attention has to be causal.
    mask = mask_function(first, first, queries, keys) & (keys <= queries)
    if rows.ancestors is not None:
        mask[..., -rows.positions.shape[0] :] &= rows.ancestors
    return mask


def tree_attention(
    _module: torch.nn.Module,
    query: torch.Tensor,  # [1, heads, rows, d]
    key: torch.Tensor,  # [1, kv heads, keys, d]
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **others: object,
) -> tuple[torch.Tensor, None]:
    """Return [1, rows, heads, d]. Raises UnsupportedModelError for foreign arguments."""
    rows = _rows.get()
    rows.num_attentions += 1
    attention_mask = _own_mask(rows, attention_mask)
    _check_arguments(others)  # attention sinks, position biases and soft caps change the result
    # The heads of a group become rows, so keys need not be copied for each head.
    heads, num_rows = query.shape[1:3]
    kv_heads = key.shape[1]
    packed = query.reshape(1, kv_heads, -1, query.shape[3])
    mask = attention_mask.repeat(1, 1, heads // kv_heads, 1)
    output = torch.nn.functional.scaled_dot_product_attention(
        packed, key, value, attn_mask=mask, scale=scaling
    )
    return output.reshape(1, heads, num_rows, -1).transpose(1, 2).contiguous(), None


def _own_mask(rows: Rows, mask: torch.Tensor | None) -> torch.Tensor:
    shape = (1, 1, rows.positions.shape[0], rows.key_positions.shape[0])
    if mask is None or mask.dtype != torch.bool or tuple(mask.shape) != shape:
        raise UnsupportedModelError("it makes its attention mask by itself")
    return mask


def _check_arguments(others: dict[str, object]) -> None:
    if others.pop("is_causal", None) is False:
        raise UnsupportedModelError("its attention also looks ahead")
    if others.pop("dropout", 0.0):
        raise UnsupportedModelError("its attention drops values at random")
    unknown = sorted(
        name for name, value in others.items() if value is not None and name not in _HANDLED
    )
    if unknown:
        raise UnsupportedModelError(f"its attention takes {', '.join(unknown)}")


AttentionInterface.register(ATTENTION, tree_attention)
AttentionMaskInterface.register(ATTENTION, tree_mask)
