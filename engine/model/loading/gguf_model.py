"""A Qwen2 or Llama model in a GGUF file, read by the tensor names of a Hugging Face folder."""

# ruff: noqa: PLC0415 - torch is imported to lay the model out for a GPU, not to read it

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.loading.chat_files import gguf_chat, with_chat
from engine.model.loading.folder_model import fingerprint_of
from engine.model.loading.gguf_file import GgufFile, parts_of
from engine.model.loading.gguf_tokenizer import tokenizer_document
from engine.model.model_config import ModelConfig
from engine.model.tokenizer import TokenizerDocument
from engine.model_names import printable

if TYPE_CHECKING:
    from kernels.weight import Weight

_ARCHITECTURES = ("qwen2", "llama")
_BLOCK_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_OTHER_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


@dataclass(frozen=True)
class GgufModel:
    """A model in a GGUF file, read on access. Each property raises ModelCorruptError."""

    path: Path

    @property
    def name(self) -> str:
        """Return the file's name without its ending, safe for a terminal."""
        return printable(self.path.stem)

    @property
    def fingerprint(self) -> str:
        """Hash the file, or all its parts."""
        return fingerprint_of(parts_of(self.path))

    @cached_property
    def config(self) -> ModelConfig:
        """Return the model's shape. Raises UnsupportedModelError for other architectures."""
        file, architecture = self._file, self._architecture
        if architecture not in _ARCHITECTURES:
            raise UnsupportedModelError(
                f"{file.path} holds a model of architecture {architecture}; of GGUF files only "
                f"{' and '.join(_ARCHITECTURES)} can be run. Name the model's folder or hub id instead"
            )
        try:
            config = _read_config(file, architecture)
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise ModelCorruptError(f"{file.path} lacks metadata: {error}") from error
        if config.deviations:
            raise UnsupportedModelError(
                f"{file.path} has {', '.join(config.deviations)}, which only transformers runs. Name "
                "the model's folder or hub id instead"
            )
        return config

    def tokenizer_document(self) -> TokenizerDocument:
        """Read the tokenizer in the metadata."""
        metadata = self._file.metadata
        return with_chat(tokenizer_document(metadata), *gguf_chat(metadata))

    def read(self, name: str) -> np.ndarray:
        """Decode one weight into a new float32 array."""
        weight = self._file.read(_gguf_name(name))
        return self._in_halves(name, weight) if self._architecture == "llama" else weight

    def has(self, name: str) -> bool:
        """Whether the model has this weight."""
        return _gguf_name(name) in self._file.tensors

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return a weight's shape without reading it."""
        return self._file.tensor(_gguf_name(name)).shape

    @property
    def has_own_forms(self) -> bool:
        """Whether a GPU can read the blocks of some matrix directly."""
        from engine.model.loading.gguf_blocks import has_own_form

        tensors = self._file.tensors.values()
        return any(has_own_form(one.kind, one.shape[-1]) for one in tensors if len(one.shape) > 1)

    def own_form(self, name: str) -> "Weight | None":
        """Return a matrix in the file's blocks; None if a GPU cannot read their kind."""
        import torch

        from engine.model.loading.gguf_blocks import own_form

        tensor = self._file.tensor(_gguf_name(name))
        weight = own_form(tensor.kind, torch.from_numpy(tensor.stored.copy()))
        if weight is None or self._architecture != "llama":
            return weight

        def halved(matrix: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(self._in_halves(name, matrix.numpy()))

        return weight.reordered(halved)

    def _in_halves(self, name: str, matrix: np.ndarray) -> np.ndarray:
        """Undo llama.cpp's reordering of a Llama's queries and keys."""
        if ".q_proj." in name:
            return _halved(matrix, self.config.num_heads)
        if ".k_proj." in name:
            return _halved(matrix, self.config.num_kv_heads)
        return matrix

    @property
    def _architecture(self) -> str:
        return printable(str(self._file.metadata.get("general.architecture")))

    @cached_property
    def _file(self) -> GgufFile:
        return GgufFile(self.path)


def _gguf_name(name: str) -> str:
    module, _, kind = name.rpartition(".")
    if module in _OTHER_NAMES:
        return f"{_OTHER_NAMES[module]}.{kind}"
    layer, _, part = module.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{_BLOCK_NAMES[part]}.{kind}"


def _read_config(file: GgufFile, architecture: str) -> ModelConfig:
    own = {
        key.removeprefix(f"{architecture}."): value
        for key, value in file.metadata.items()
        if key.startswith(f"{architecture}.")
    }
    num_heads = own["attention.head_count"]
    head_dim = own.get("attention.key_length", own["embedding_length"] // num_heads)
    return ModelConfig(
        num_layers=own["block_count"],
        hidden_size=own["embedding_length"],
        num_heads=num_heads,
        num_kv_heads=own.get("attention.head_count_kv", num_heads),
        head_dim=head_dim,
        intermediate_size=own["feed_forward_length"],
        vocab_size=file.tensors["token_embd.weight"].shape[0],
        rope_theta=float(own.get("rope.freq_base", 10000.0)),
        # Undo the widening from float32, so that 1e-6 is 1e-6 again.
        rms_norm_eps=float(f"{own['attention.layer_norm_rms_epsilon']:.7g}"),
        tie_word_embeddings="output.weight" not in file.tensors,
        max_position=own["context_length"],
        qkv_bias=architecture == "qwen2",
        deviations=tuple(map(printable, _deviations(architecture, own, file.tensors, head_dim))),
    )


def _deviations(
    architecture: str, own: Mapping[str, Any], tensors: Collection[str], head_dim: int
) -> Iterator[str]:
    factor = own.get("rope.scaling.factor", own.get("rope.scale_linear", 1))
    # As in llama.cpp: a factor alone means linear scaling, and 0 means none.
    scaling = own.get("rope.scaling.type", "none" if factor in (0, 1) else "linear")
    if scaling not in ("none", "linear") or (scaling == "linear" and factor not in (0, 1)):
        yield f"{scaling} rotary embedding"
    if "rope_freqs.weight" in tensors:  # Llama 3.1 and later
        yield "llama3 rotary embedding"
    if own.get("rope.dimension_count", head_dim) != head_dim:
        yield "rotary embedding of a part of a head"
    if own.get("expert_count"):
        yield "experts"
    if architecture == "llama" and any(name.endswith(".bias") for name in tensors):
        yield "biases"


def _halved(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """Put a head's outputs in the order of halves, undoing `permute` of `convert_hf_to_gguf.py`."""
    pairs = weight.reshape(num_heads, -1, 2, weight.shape[1])
    return pairs.swapaxes(1, 2).reshape(weight.shape)
