"""Where weights come from: a GGUF file or a Hugging Face folder, one float32 tensor at a time.

Names are those of Hugging Face's Qwen2, whatever the file calls them.
"""

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.loading import gguf_tokenizer
from engine.model.loading.gguf_file import GgufFile
from engine.model.model_config import QWEN2, ModelConfig


class WeightSource(Protocol):
    """A model before conversion."""

    @property
    def config(self) -> ModelConfig:
        """The model's shape."""
        ...

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Token ids that the model's own configuration calls ends of text."""
        ...

    def tokenizer_json(self) -> str:
        """Return the content of tokenizer.json."""
        ...

    def read(self, name: str) -> torch.Tensor:
        """Read one weight, float32, a tensor of its own. Raises ModelCorruptError if missing."""
        ...


_GGUF_BLOCK_NAMES = {
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
_GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


class GgufSource:
    """A Qwen2 model in one GGUF file."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises ModelCorruptError, or UnsupportedModelError if it is no Qwen2."""
        self.path = path
        self._file = GgufFile(path)
        self.config = _gguf_config(self._file)
        self.end_ids = tuple(gguf_tokenizer.end_ids(self._file.metadata))

    def tokenizer_json(self) -> str:
        """Build the content of tokenizer.json from the metadata."""
        return gguf_tokenizer.tokenizer_json(self._file.metadata)

    def read(self, name: str) -> torch.Tensor:
        """Decode one weight."""
        return torch.from_numpy(self._file.read(_gguf_name(name)))


def _gguf_name(name: str) -> str:
    module, _, kind = name.rpartition(".")
    if module in _GGUF_NAMES:
        return f"{_GGUF_NAMES[module]}.{kind}"
    layer, _, part = module.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{_GGUF_BLOCK_NAMES[part]}.{kind}"


def _gguf_config(file: GgufFile) -> ModelConfig:
    metadata = file.metadata
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
            architecture=QWEN2,
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


def _shortest(value: float) -> float:
    """Undo the widening of a float32, so that 1e-6 reads 1e-6."""
    return float(f"{value:.7g}")


class FolderSource:
    """A model in a Hugging Face folder: config.json, tokenizer.json and safetensors files."""

    def __init__(self, folder: Path) -> None:
        """Read the configuration. Raises ModelCorruptError when a file is missing or garbled."""
        self.folder = folder
        self.config = ModelConfig.from_hugging_face(read_json(folder / "config.json"))
        self.end_ids = folder_end_ids(folder)

    def tokenizer_json(self) -> str:
        """Return the content of tokenizer.json."""
        return folder_tokenizer_json(self.folder)

    def read(self, name: str) -> torch.Tensor:
        """Read one weight from the file that holds it."""
        if name not in self._files:
            raise ModelCorruptError(f"{self.folder} lacks the tensor {name}")
        with _opened(self._files[name]) as stored:
            tensor: torch.Tensor = stored.get_tensor(name)
            return tensor.to(torch.float32, copy=True)

    @cached_property
    def _files(self) -> dict[str, Path]:
        paths = sorted(self.folder.glob("*.safetensors"))
        if not paths:
            raise UnsupportedModelError(f"{self.folder} holds no .safetensors file")
        return {name: path for path in paths for name in _names(path)}


def _names(path: Path) -> list[str]:
    with _opened(path) as stored:
        return list(stored.keys())


def _opened(path: Path) -> safe_open:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise ModelCorruptError(f"{path} cannot be read: {error}") from error


def folder_tokenizer_json(folder: Path) -> str:
    """Return the content of a folder's tokenizer.json. Raises UnsupportedModelError without one."""
    try:
        return (folder / "tokenizer.json").read_text("utf-8")
    except FileNotFoundError as error:
        raise UnsupportedModelError(
            f"{folder} holds no tokenizer.json; transformers writes one with "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        ) from error


def folder_end_ids(folder: Path) -> tuple[int, ...]:
    """Return the ids that a folder's configuration and generation settings call ends of text."""
    ends: list[int] = []
    for name in ("config.json", "generation_config.json"):
        path = folder / name
        value = read_json(path).get("eos_token_id") if path.exists() else None
        ends += value if isinstance(value, list) else [value] if value is not None else []
    return tuple(dict.fromkeys(ends))


def read_json(path: Path) -> dict[str, Any]:
    """Return an object that a file holds. Raises ModelCorruptError."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelCorruptError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ModelCorruptError(f"{path} holds no JSON object")
    return content
