"""Any causal language model of transformers, behind the interface of `engine.model.causal_lm`.

The way for architectures that have no forward of our own: right on all of them or refused with a
reason, not fast. transformers takes seconds to import, so load this module on demand.
"""

import inspect

import numpy as np
import torch
from transformers import PreTrainedModel

from engine.errors import UnsupportedModelError
from engine.model.causal_lm import StepInput, prefill
from engine.model.eager import EagerModel
from engine.model.token_tree import TokenTree
from engine.model.top_tokens import Logits
from engine.model.transformers.attention import ATTENTION, Rows, attending
from engine.model.transformers.cache import SlotCache

_ARGUMENTS = ("position_ids", "logits_to_keep")
_CACHES = ("cache", "past_key_values")  # the cache's argument, from transformers 5.24 on and before
_ATTENTION_LAYERS = {"full_attention", "sliding_attention", "chunked_attention"}

# How a model fails that wants another cache or other arguments than ours: each in its own way.
_MISFITS = (AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError)


class TransformersModel(EagerModel):
    """A model of transformers that verifies token trees; see `CausalModel` for the contract.

    It takes the network over: from then on that attends through `transformers_attention` alone.
    Raises UnsupportedModelError if the network cannot run a tree, which a few rows prove.
    """

    def __init__(self, network: PreTrainedModel) -> None:
        self._network = network
        self._config = network.config.get_text_config(decoder=True)
        self.device = str(network.device)
        self.dtype_name = str(network.dtype).removeprefix("torch.")
        try:
            self._check_architecture()
            self.max_context = int(self._config.max_position_embeddings)
            self.vocab_size = self._check_branch()
        except (UnsupportedModelError, *_MISFITS) as error:
            kind = network.config.model_type
            raise UnsupportedModelError(f"cannot run a model of type {kind!r}: {error}") from error

    def new_slot(self, capacity: int) -> SlotCache:
        """Make an empty slot for `capacity` tokens."""
        return SlotCache(capacity)

    def _check_architecture(self) -> None:
        """Refuse what no mask can turn into a tree, and configurations that lack what we need."""
        arguments = inspect.signature(self._network.forward).parameters
        missing = [name for name in _ARGUMENTS if name not in arguments]
        caches = [name for name in _CACHES if name in arguments]
        missing += [] if caches else _CACHES[:1]
        if missing:
            raise UnsupportedModelError(f"its forward takes no {', '.join(missing)}")
        self._cache_argument = caches[0]
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
        prefill(self, slot, text[:1])
        tree = TokenTree(np.array([7, 3, 11, 13]), np.array([-1, 0, 0, 2], np.int32))
        error = (self._forward(StepInput(slot, tree)).values[3] - expected).abs().max()
        if not error <= 0.25 * expected.float().std():
            raise UnsupportedModelError("a branch of its token tree does not read like plain text")
        return int(expected.shape[0])

    @torch.inference_mode()
    def _forward(self, step: StepInput) -> Logits:
        """Logits float32 [rows, vocab], without a head of the last row alone."""
        tree, cache, device = step.tree, step.slot, self._network.device
        cache.tree = tree
        positions = torch.from_numpy(cache.length + tree.depths).to(device)
        rows = Rows(
            positions,
            torch.cat([torch.arange(cache.length, device=device), positions]),
            torch.from_numpy(tree.ancestors).to(device) if step.has_head else None,
        )
        with attending(rows):
            output = self._network(
                input_ids=torch.from_numpy(tree.token_ids).to(device)[None],
                position_ids=positions[None],
                use_cache=True,
                logits_to_keep=0 if step.has_head else 1,
                **{self._cache_argument: cache},
            )
        if rows.num_masks == 0 or rows.num_attentions != cache.num_layers:
            raise UnsupportedModelError("it does not attend through transformers' interface")
        return Logits(output.logits[0].float())
