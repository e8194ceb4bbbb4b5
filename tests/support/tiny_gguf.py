"""A small Qwen2 or Llama GGUF file with random weights and the byte tokenizer, written by the gguf package."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType, GGUFWriter, TokenType
from gguf.quants import quantize

from tests.support.byte_tokenizer import CONTROL_TOKENS, byte_tokenizer

HIDDEN, LAYERS, HEADS, KV_HEADS, MLP = 64, 2, 4, 2, 96
CONTEXT_LEN = 512
END_ID = 0
RANDOM_BLOCKS = {  # sizes of a block's float16 scales, by their byte offsets
    GGMLQuantizationType.Q4_K: {0: 1 / 256, 2: 7.5 / 256},
    GGMLQuantizationType.Q5_K: {0: 1 / 512, 2: 15.5 / 512},
    GGMLQuantizationType.Q6_K: {208: 1 / 1024},
}
UNUSED_TOKENS = 3  # rows of the embedding beyond the vocabulary, as Qwen has them


def write_tiny_gguf(
    path: Path,
    *,
    tied: bool = False,
    architecture: str = "qwen2",
    more: Mapping[str, str | int] = MappingProxyType({}),
    hidden: int = HIDDEN,
    mlp: int = MLP,
    layers: int = LAYERS,
    kind_of: Callable[[str], GGMLQuantizationType] | None = None,
    tensors_of_part: int = 0,
) -> Path:
    """Write the model to `path`; without a head if it is tied to the embedding.

    `more` goes to its metadata. `kind_of` returns a tensor's storage type by its name. Tensors of
    types that the gguf package cannot write hold random blocks. `tensors_of_part` splits the file;
    its parts lie beside `path`.
    """
    writer = GGUFWriter(path, architecture, split_max_tensors=tensors_of_part)
    writer.add_block_count(layers)
    writer.add_context_length(CONTEXT_LEN)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(mlp)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_uint32("qwen2.rope.freq_base", 10_000)  # most files hold a float
    writer.add_layer_norm_rms_eps(1e-6)
    for key, value in more.items():
        writer.add_key_value(key, value, GGUFValueType.get_type(value))
    _add_tokenizer(writer)
    for name, tensor in tiny_tensors(tied=tied, hidden=hidden, mlp=mlp, layers=layers).items():
        if architecture == "llama" and name.endswith("bias"):
            continue
        kind = (kind_of or tensor_kind)(name)
        stored = _in_pairs(name, tensor) if architecture == "llama" else tensor
        is_random = kind in RANDOM_BLOCKS
        blocks = random_blocks(kind, *tensor.shape) if is_random else quantize(stored, kind)
        writer.add_tensor(name, blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tensor_kind(name: str) -> GGMLQuantizationType:
    """Return a tensor's storage type: several in one file, as in real files."""
    if name.endswith("bias") or "norm" in name:
        return GGMLQuantizationType.F32
    if name in ("token_embd.weight", "blk.0.ffn_down.weight"):
        return GGMLQuantizationType.Q8_0
    return GGMLQuantizationType.F16 if ".1." in name else GGMLQuantizationType.Q5_0


def like_q4_k_m(name: str) -> GGMLQuantizationType:
    """Return the types of llama.cpp's Q4_K_M: 6 bits for the head, some values, some of down."""
    if name.endswith("bias") or "norm" in name:
        return GGMLQuantizationType.F32
    if name in ("token_embd.weight", "blk.0.attn_v.weight", "blk.0.ffn_down.weight"):
        return GGMLQuantizationType.Q6_K
    return GGMLQuantizationType.Q4_K


def random_blocks(kind: GGMLQuantizationType, rows: int, width: int) -> np.ndarray:
    """Return bytes [rows, any] of weights of a size about `width` ** -0.5."""
    blocks = np.random.default_rng(rows + width).integers(
        0, 256, (rows, width // 256, GGML_QUANT_SIZES[kind][1]), np.uint8
    )
    for at, scale in RANDOM_BLOCKS[kind].items():
        scales = np.random.default_rng(at).uniform(0.5, 1.5, blocks.shape[:2]) * scale / width**0.5
        blocks[:, :, at : at + 2] = scales.astype(np.float16)[:, :, None].view(np.uint8)
    return blocks.reshape(rows, -1)


def tiny_tensors(
    *, tied: bool = False, hidden: int = HIDDEN, mlp: int = MLP, layers: int = LAYERS
) -> dict[str, np.ndarray]:
    """Return random float32 tensors by their GGUF names; the same at each call."""
    random = np.random.default_rng(0)
    vocab, kv = byte_tokenizer().get_vocab_size() + UNUSED_TOKENS, hidden // HEADS * KV_HEADS
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (vocab, hidden),
        "output_norm.weight": (hidden,),
    }
    if not tied:
        shapes["output.weight"] = (vocab, hidden)
    for layer in range(layers):
        block = f"blk.{layer}"
        for part, width in (("q", hidden), ("k", kv), ("v", kv)):
            shapes[f"{block}.attn_{part}.weight"] = (width, hidden)
            shapes[f"{block}.attn_{part}.bias"] = (width,)
        shapes[f"{block}.attn_output.weight"] = (hidden, hidden)
        shapes[f"{block}.attn_norm.weight"] = (hidden,)
        shapes[f"{block}.ffn_norm.weight"] = (hidden,)
        shapes[f"{block}.ffn_gate.weight"] = (mlp, hidden)
        shapes[f"{block}.ffn_up.weight"] = (mlp, hidden)
        shapes[f"{block}.ffn_down.weight"] = (hidden, mlp)
    return {
        name: random.standard_normal(shape, dtype=np.float32) / shape[-1] ** 0.5
        for name, shape in shapes.items()
    }


def _in_pairs(name: str, tensor: np.ndarray) -> np.ndarray:
    """Order a Llama's queries and keys as `LlamaModel.permute` of llama.cpp's converter does."""
    heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(name.split(".")[-2])
    if heads is None:
        return tensor
    halves = tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, *tensor.shape[1:])
    return halves.swapaxes(1, 2).reshape(tensor.shape)


def _add_tokenizer(writer: GGUFWriter) -> None:
    model = json.loads(byte_tokenizer().to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    kinds = [TokenType.CONTROL if token in CONTROL_TOKENS else TokenType.NORMAL for token in tokens]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([*tokens, *(f"[PAD{index}]" for index in range(UNUSED_TOKENS))])
    writer.add_token_types([*kinds, *[TokenType.UNUSED] * UNUSED_TOKENS])
    writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    writer.add_eos_token_id(END_ID)
