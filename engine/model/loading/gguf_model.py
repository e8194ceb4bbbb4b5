"""A Qwen2 model in one GGUF file, read as if it were a Hugging Face folder.

Tensors are asked for by their Hugging Face names, whatever the file calls them.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.loading import gguf_tokenizer
from engine.model.loading.gguf_file import GgufFile
from engine.model.model_config import ModelConfig

_SAMPLE = 1 << 20
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
    """Nothing is read before it is asked for; each property raises ModelCorruptError.

    What needs the header also raises UnsupportedModelError for another architecture.
    """

    path: Path

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @property
    def fingerprint(self) -> str:
        """From size, time and the ends of the file: the middle would take seconds to read."""
        try:
            with self.path.open("rb") as file:
                stat = self.path.stat()
                total = hashlib.blake2b(f"{stat.st_size} {stat.st_mtime_ns}".encode())
                total.update(file.read(_SAMPLE))
                file.seek(max(0, stat.st_size - _SAMPLE))
                total.update(file.read(_SAMPLE))
        except OSError as error:
            raise ModelCorruptError(f"{self.path} cannot be read: {error}") from error
        return total.hexdigest()

    @cached_property
    def config(self) -> ModelConfig:
        """The model's shape."""
        file, metadata = self._file, self._file.metadata
        architecture = metadata.get("general.architecture")
        if architecture != "qwen2":
            raise UnsupportedModelError(
                f"{file.path} holds a model of architecture {architecture}; of GGUF files only qwen2 "
                "can be run. Name the model's folder or hub id instead"
            )
        scaling = metadata.get("qwen2.rope.scaling.type", "none")
        try:
            num_heads = metadata["qwen2.attention.head_count"]
            return ModelConfig(
                num_layers=metadata["qwen2.block_count"],
                hidden_size=metadata["qwen2.embedding_length"],
                num_heads=num_heads,
                num_kv_heads=metadata.get("qwen2.attention.head_count_kv", num_heads),
                head_dim=metadata["qwen2.embedding_length"] // num_heads,
                intermediate_size=metadata["qwen2.feed_forward_length"],
                vocab_size=file.tensors["token_embd.weight"].shape[0],
                rope_theta=metadata.get("qwen2.rope.freq_base", 10000.0),
                rms_norm_eps=_shortest(metadata["qwen2.attention.layer_norm_rms_epsilon"]),
                tie_word_embeddings="output.weight" not in file.tensors,
                max_position=metadata["qwen2.context_length"],
                deviations=() if scaling == "none" else (f"{scaling} rotary embedding",),
            )
        except (KeyError, TypeError, ZeroDivisionError) as error:
            raise ModelCorruptError(f"{file.path} lacks metadata: {error}") from error

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Token ids that the metadata calls ends of text."""
        return tuple(gguf_tokenizer.end_ids(self._file.metadata))

    def tokenizer_json(self) -> str:
        """Build the content of tokenizer.json from the metadata."""
        return gguf_tokenizer.tokenizer_json(self._file.metadata)

    def read(self, name: str) -> torch.Tensor:
        """Decode one weight: float32, a tensor of its own."""
        return torch.from_numpy(self._file.read(_gguf_name(name)))

    @cached_property
    def _file(self) -> GgufFile:
        return GgufFile(self.path)


def _gguf_name(name: str) -> str:
    module, _, kind = name.rpartition(".")
    if module in _OTHER_NAMES:
        return f"{_OTHER_NAMES[module]}.{kind}"
    layer, _, part = module.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{_BLOCK_NAMES[part]}.{kind}"


def _shortest(value: float) -> float:
    """Undo the widening of a float32, so that 1e-6 reads 1e-6."""
    return float(f"{value:.7g}")
