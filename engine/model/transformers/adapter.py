"""Run any causal language model of transformers, which takes seconds to import."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from engine.errors import (
    ConfigurationError,
    ModelCorruptError,
    NoSpaceError,
    UnsupportedModelError,
)
from engine.model.causal_lm import StepInput, prefill
from engine.model.device import DeviceUnfitError
from engine.model.eager import EagerModel, Logits
from engine.model.token_tree import TokenTree
from engine.model.transformers.attention import ATTENTION, Rows, attending
from engine.model.transformers.cache import SlotCache
from engine.model_names import printable

_ARGUMENTS = ("position_ids", "logits_to_keep")
_CACHES = ("cache", "past_key_values")  # name of the cache argument from transformers 5.24; before
_ATTENTION_LAYERS = {"full_attention", "sliding_attention", "chunked_attention"}

# Errors of models that need another cache or other arguments.
_MISFITS = (AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError)
_DTYPES = ("float32", "bfloat16", "float16", "float64")


class TransformersModel(EagerModel):
    """A network with our attention. Raises UnsupportedModelError if a trial run of a tree fails."""

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
        """Return an empty slot for `capacity` tokens."""
        return SlotCache(capacity)

    def _check_architecture(self) -> None:
        """Refuse models that no mask can make run trees, and incomplete configurations."""
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
        """Compare a branch with its text in the unchanged network. Returns the logits' columns."""
        text = [5, 7, 11, 13]
        plain = self._network(torch.tensor([text], device=self._network.device))
        expected = plain.logits[0, -1].float().cpu().numpy()
        self._network.set_attn_implementation(ATTENTION)
        slot = self.new_slot(len(text) + 1)
        prefill(self, slot, text[:1])
        tree = TokenTree(np.array([7, 3, 11, 13]), np.array([-1, 0, 0, 2], np.int32))
        error = np.abs(self._forward(StepInput(slot, tree)).values[3] - expected).max()
        if not error <= 0.25 * expected.std():  # wide because of low precision
            raise UnsupportedModelError("a branch of its token tree does not read like plain text")
        return int(expected.shape[0])

    @torch.inference_mode()
    def _forward(self, step: StepInput) -> Logits:
        """Return logits float32 [rows, vocab]; without a head, of the last row only."""
        tree, cache, device = step.tree, step.slot, self._network.device
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
        return Logits(output.logits[0].float().contiguous().cpu().numpy())


def load_transformers_model(
    folder: Path, *, dtype_name: str = "float32", device: str = "cpu"
) -> TransformersModel:
    """Load a model's folder, never running code in it. Raises ForegramError."""
    if dtype_name not in _DTYPES:
        raise ConfigurationError(f"dtype {dtype_name!r} is none of {', '.join(_DTYPES)}")
    model = _from_pretrained(folder, getattr(torch, dtype_name))
    module: torch.nn.Module = model
    try:
        module.to(device).eval()
        return TransformersModel(model)
    except (RuntimeError, TypeError) as error:  # raised only on GPUs
        if "out of memory" in str(error):
            reason = str(error).partition("\n")[0]
            raise NoSpaceError(
                f"the model does not fit the memory of {device}: {reason}"
            ) from error
        raise DeviceUnfitError(device, error) from error


def _told(error: Exception) -> str:
    """Return the error's message on one line, made printable, since it may quote a file."""
    return printable(" ".join(str(error).split()))


def _from_pretrained(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """Load the model, refusing missing tensors, which transformers would fill at random."""
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model: PreTrainedModel
    report: dict[str, Any]
    try:
        model, report = AutoModelForCausalLM.from_pretrained(  # type: ignore[misc]
            folder,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    except (OSError, SafetensorError) as error:
        raise ModelCorruptError(f"{folder} holds no whole model: {_told(error)}") from error
    except Exception as error:  # a senseless configuration fails anywhere in transformers
        raise UnsupportedModelError(f"transformers cannot load {folder}: {_told(error)}") from error
    faults = [str(fault) for key in ("missing_keys", "mismatched_keys") for fault in report[key]]
    if faults:
        raise ModelCorruptError(f"{folder} lacks whole tensors: {', '.join(sorted(faults)[:3])}")
    return model
