"""Where weights come from: a GGUF file or a Hugging Face folder, tensor by tensor in float32.

Names are those of Hugging Face's Qwen2, whatever the file calls them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from safetensors import SafetensorError, safe_open

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model import gguf_tokenizer
from engine.model.gguf_file import GgufFile
from engine.model.model_config import QWEN2, ModelConfig


class NamedTensor(NamedTuple):
    """A weight under its canonical name, float32."""

    name: str
    tensor: torch.Tensor


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

    def tensors(self) -> Iterator[NamedTensor]:
        """Read one weight after the other, so that only one is in memory."""
        ...


_GGUF_BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_GGUF_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


class GgufSource:
    """A Qwen2 model in one GGUF file."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises ModelCorruptError, or UnsupportedModelError if it is no Qwen2."""
        self._file = GgufFile(path)
        self.config = _gguf_config(self._file)
        self.end_ids = tuple(gguf_tokenizer.end_ids(self._file.metadata))

    def tokenizer_json(self) -> str:
        """Build the content of tokenizer.json from the metadata."""
        return gguf_tokenizer.tokenizer_json(self._file.metadata)

    def tensors(self) -> Iterator[NamedTensor]:
        """Read and decode one weight after the other."""
        for name in self._file.tensors:
            yield NamedTensor(_canonical(name), torch.from_numpy(self._file.read(name)))


def _canonical(name: str) -> str:
    if name in _GGUF_NAMES:
        return _GGUF_NAMES[name]
    match name.split("."):
        case ["blk", layer, part, kind] if part in _GGUF_BLOCK_NAMES:
            return f"model.layers.{layer}.{_GGUF_BLOCK_NAMES[part]}.{kind}"
    raise UnsupportedModelError(f"the GGUF file holds a tensor that no Qwen2 has: {name}")


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

    def tensors(self) -> Iterator[NamedTensor]:
        """Read one weight after the other, files in the order of their names."""
        files = sorted(self.folder.glob("*.safetensors"))
        if not files:
            raise UnsupportedModelError(f"{self.folder} holds no .safetensors file")
        for path in files:
            yield from _read_safetensors(path)


def _read_safetensors(path: Path) -> Iterator[NamedTensor]:
    try:
        with safe_open(path, framework="pt") as stored:
            for name in stored.keys():  # noqa: SIM118 - it is no dictionary
                yield NamedTensor(name, stored.get_tensor(name).to(torch.float32))
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
