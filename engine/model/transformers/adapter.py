"""Any causal language model of transformers, behind the interface of `engine.model.causal_lm`.

The way for architectures that have no forward of our own: right on all of them or refused with a
reason, not fast. transformers takes seconds to import, so load this module on demand.
"""

import inspect
from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from transformers import PreTrainedModel

from engine.errors import UnsupportedModelError
from engine.model.token_tree import TokenTree
from engine.model.transformers.attention import ATTENTION, Rows, attending
from engine.model.transformers.cache import SlotCache

_PREFILL_ROWS = 512  # rows of one forward while a prompt is read; bounds its mask
_ARGUMENTS = ("position_ids", "past_key_values", "logits_to_keep")
_ATTENTION_LAYERS = {"full_attention", "sliding_attention", "chunked_attention"}

# How a model fails that wants another cache or other arguments than ours: each in its own way.
_MISFITS = (AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError)


class TransformersModel:
    """A model of transformers that verifies token trees; see `CausalModel` for the contract.

    It takes the network over: from then on that attends through `transformers_attention` alone.
    Raises UnsupportedModelError if the network cannot run a tree, which a few rows prove.
    """

    def __init__(self, network: PreTrainedModel) -> None:
        self._network = network
        self._config = network.config.get_text_config(decoder=True)
        try:
            self._check_architecture()
            self._vocab_size = self._check_branch()
        except (UnsupportedModelError, *_MISFITS) as error:
            kind = network.config.model_type
            raise UnsupportedModelError(f"cannot run a model of type {kind!r}: {error}") from error

    @property
    def vocab_size(self) -> int:
        """Columns of the logits."""
        return self._vocab_size

    @property
    def max_context(self) -> int:
        """Positions that the model was made for."""
        return int(self._config.max_position_embeddings)

    @property
    def row_buckets(self) -> tuple[int, ...]:
        """None: each row counts."""
        return ()

    @property
    def num_lanes(self) -> int:
        """One."""
        return 1

    @property
    def reserved_bytes(self) -> int:
        """None: each slot takes its own."""
        return 0

    def expect(self, num_running: int) -> None:
        """Each sequence has its steps for itself."""

    @property
    def device(self) -> str:
        """Where it runs."""
        return str(self._network.device)

    @property
    def dtype_name(self) -> str:
        """How the weights are held."""
        return str(self._network.dtype).removeprefix("torch.")

    def new_slot(self, capacity: int) -> "TransformersSlot":
        """Make an empty slot for `capacity` tokens."""
        return TransformersSlot(self._network, capacity)

    def _check_architecture(self) -> None:
        """Refuse what no mask can turn into a tree, and configurations that lack what we need."""
        arguments = inspect.signature(self._network.forward).parameters
        missing = [name for name in _ARGUMENTS if name not in arguments]
        if missing:
            raise UnsupportedModelError(f"its forward takes no {', '.join(missing)}")
        kinds = set(getattr(self._config, "layer_types", None) or ()) - _ATTENTION_LAYERS
        if kinds:
            raise UnsupportedModelError(f"it has layers of kind {', '.join(sorted(kinds))}")
        if getattr(self._config, "max_position_embeddings", None) is None:
            raise UnsupportedModelError("its configuration names no max_position_embeddings")
        if getattr(self._config, "is_causal", True) is False or getattr(
            self._config, "use_bidirectional_attention", None
        ):
            raise UnsupportedModelError("its attention also looks ahead")

    @torch.inference_mode()
    def _check_branch(self) -> int:
        """Compare the end of a branch with the same text in the untouched network.

        Returns the number of columns of the logits. The bar is wide, because low precision makes
        noise; a row that saw its sibling, or missed its parent, is far beyond it.
        """
        text = [5, 7, 11, 13]
        expected = self._network(torch.tensor([text], device=self._network.device)).logits[0, -1]
        self._network.set_attn_implementation(ATTENTION)
        slot = self.new_slot(len(text) + 1)
        slot.prefill(text[:1])
        tree = TokenTree(np.array([7, 3, 11, 13]), np.array([-1, 0, 0, 2], np.int32))
        error = (slot.step(tree)[3] - expected).abs().max()
        if not error <= 0.25 * expected.float().std():
            raise UnsupportedModelError("a branch of its token tree does not read like plain text")
        return int(expected.shape[0])


class TransformersSlot:
    """One sequence in a `TransformersModel`; see `CacheSlot` for the contract."""

    def __init__(self, network: PreTrainedModel, capacity: int) -> None:
        self._network = network
        self._cache = SlotCache(capacity)
        self._tree: TokenTree | None = None

    @property
    def length(self) -> int:
        """Committed tokens."""
        return self._cache.length

    @property
    def capacity(self) -> int:
        """Tokens that fit, committed and in flight."""
        return self._cache.capacity

    @property
    def num_bytes(self) -> int:
        """Memory of its keys and values."""
        return self._cache.num_bytes

    @torch.inference_mode()
    def copy_from(self, other: Self, length: int) -> None:
        """Hold the first `length` tokens of `other`."""
        self._cache.copy_from(other._cache, length)
        self._tree = None

    @torch.inference_mode()
    def prefill(self, token_ids: Sequence[int]) -> torch.Tensor:
        """Commit `token_ids`; logits of the last one, float32 [1, vocab]."""
        if not token_ids:
            raise ValueError("a prefill has at least one token")
        self._tree = None
        self._check_room(len(token_ids))
        for start in range(0, len(token_ids), _PREFILL_ROWS):
            chunk = np.asarray(token_ids[start : start + _PREFILL_ROWS], np.int64)
            logits = self._forward(chunk, np.arange(len(chunk)), None, logits_to_keep=1)
            self._cache.keep(range(len(chunk)))
        return logits

    @torch.inference_mode()
    def step(self, tree: TokenTree) -> torch.Tensor:
        """Logits of every row, float32 [rows, vocab]; nothing is committed yet."""
        self._check_room(tree.num_rows)
        self._tree = tree
        return self._forward(tree.token_ids, tree.depths, tree.ancestors, logits_to_keep=0)

    @torch.inference_mode()
    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the last step, row 0 first."""
        if self._tree is None:
            raise ValueError("there is no step to commit")
        if [int(self._tree.parents[row]) for row in rows] != [-1, *rows[:-1]]:
            raise ValueError(f"rows {list(rows)} are no path from the root of the last step")
        self._cache.keep(rows)
        self._tree = None

    def truncate(self, length: int) -> None:
        """Forget everything from position `length` on."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate {self.length} tokens to {length}")
        self._cache.length = length
        self._tree = None

    def _check_room(self, num_rows: int) -> None:
        if self.length + num_rows > self.capacity:
            raise ValueError(
                f"{num_rows} tokens do not fit behind {self.length} of {self.capacity}"
            )

    def _forward(
        self,
        token_ids: np.ndarray,
        depths: np.ndarray,
        ancestors: np.ndarray | None,
        logits_to_keep: int,
    ) -> torch.Tensor:
        device = self._network.device
        positions = torch.from_numpy(self.length + depths).to(device)
        rows = Rows(
            positions,
            torch.cat([torch.arange(self.length, device=device), positions]),
            None if ancestors is None else torch.from_numpy(ancestors).to(device),
        )
        with attending(rows):
            output = self._network(
                input_ids=torch.from_numpy(token_ids).to(device)[None],
                position_ids=positions[None],
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=logits_to_keep,
            )
        if rows.num_masks == 0 or rows.num_attentions != self._cache.num_layers:
            raise UnsupportedModelError("it does not attend through transformers' interface")
        logits: torch.Tensor = output.logits[0]
        return logits.float()
