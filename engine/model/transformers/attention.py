"""Attention of a token tree inside the models of transformers.

One attention function and one mask function, registered under `ATTENTION`, reach every model
written against transformers' attention interface. The mask function asks the model's own rule
(causal, sliding window, chunks) about the positions of the tree's rows instead of their indices;
then siblings are hidden from each other.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from transformers import AttentionInterface, AttentionMaskInterface

from engine.errors import UnsupportedModelError

ATTENTION = "foregram_tree"

# What transformers hands to attention besides the tensors, and what of it is handled elsewhere: the
# window by the mask function, positions by the rotary embedding, the rest by nobody in inference.
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
    """The rows of the forward under way, and what happened to them.

    `positions` int64 [rows]; `key_positions` int64 [keys], the committed ones and then the rows';
    `ancestors` bool [rows, rows] or None for a chain. The counts tell whether the model asked us.
    """

    positions: torch.Tensor
    key_positions: torch.Tensor
    ancestors: torch.Tensor | None
    num_masks: int = 0
    num_attentions: int = 0


# Models pass neither positions nor tree on to the mask function, hence a variable of this context.
_rows: ContextVar[Rows] = ContextVar("rows of the forward under way")


@contextmanager
def attending(rows: Rows) -> Iterator[Rows]:
    """Let the forward inside the block attend as `rows` say."""
    token = _rows.set(rows)
    try:
        yield rows
    finally:
        _rows.reset(token)


def tree_mask(*, mask_function: MaskRule, use_vmap: bool = False, **_sizes: object) -> torch.Tensor:
    """Build the bool mask [1, 1, rows, keys]; True where a row attends to a key."""
    if use_vmap:
        raise UnsupportedModelError("its attention mask depends on more than positions")
    rows = _rows.get()
    rows.num_masks += 1
    queries, keys = rows.positions[None, None, :, None], rows.key_positions[None, None, None, :]
    first = torch.zeros_like(queries[:, :, :1])  # of the one sequence, of any head
    # Only causal attention leaves the keys of later rows alone; a rule without that is not ours.
    mask = mask_function(first, first, queries, keys) & (keys <= queries)
    if rows.ancestors is not None:
        mask[..., -rows.positions.shape[0] :] &= rows.ancestors
    return mask


def tree_attention(
    _module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    **others: object,
) -> tuple[torch.Tensor, None]:
    """Attend from query [1, heads, rows, d] to key and value [1, kv heads, keys, d].

    Returns [1, rows, heads, d]. Raises UnsupportedModelError for what would change the result and
    is not understood here: a foreign mask, attention sinks, position biases.
    """
    rows = _rows.get()
    rows.num_attentions += 1
    attention_mask = _own_mask(rows, attention_mask)
    _check_arguments(others)
    # The heads of a group stand below each other as rows, so keys are not copied for each of them.
    heads, num_rows = query.shape[1:3]
    kv_heads = key.shape[1]
    packed = query.reshape(1, kv_heads, -1, query.shape[3])
    mask = attention_mask.repeat(1, 1, heads // kv_heads, 1)
    if softcap is None:
        output = torch.nn.functional.scaled_dot_product_attention(
            packed, key, value, attn_mask=mask, scale=scaling
        )
    else:
        output = _softcapped(packed, key, value, mask, scaling, softcap)
    return output.reshape(1, heads, num_rows, -1).transpose(1, 2).contiguous(), None


def _softcapped(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor,
    scaling: float | None,
    softcap: float,
) -> torch.Tensor:
    """Gemma 2's attention: scores are bent by softcap * tanh(score / softcap) before the mask."""
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = torch.tanh(query @ key.transpose(2, 3) * (scale / softcap)) * softcap
    scores = scores.masked_fill(~mask, float("-inf"))
    exact = torch.promote_types(scores.dtype, torch.float32)
    return torch.softmax(scores, dim=-1, dtype=exact).to(value.dtype) @ value


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
