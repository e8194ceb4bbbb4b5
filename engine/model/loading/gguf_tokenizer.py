"""A tokenizer.json from the metadata of a GGUF file, for byte-level vocabularies.

Equal to what transformers builds for the same model, in under two seconds instead of thirteen.
"""

import json
from collections.abc import Mapping
from typing import Any

from engine.errors import ModelCorruptError, UnsupportedModelError

_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5  # llama.cpp's llama_token_type
_AS_WRITTEN = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)

# Words are cut before merging; llama.cpp names the rule, llama-vocab.cpp holds the expressions.
_SPLITS = {
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}


def tokenizer_json(metadata: Mapping[str, Any]) -> str:
    """Build the content of tokenizer.json. Raises UnsupportedModelError or ModelCorruptError."""
    model, split = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if model != "gpt2" or split not in _SPLITS:
        known = ", ".join(sorted(_SPLITS))
        raise UnsupportedModelError(
            f"the GGUF file has a tokenizer of kind {model}/{split}, and only gpt2 with {known} is "
            "known; name the model's folder or hub id instead"
        )
    try:
        tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
        merges = [merge.split(" ") for merge in metadata["tokenizer.ggml.merges"]]
        typed = list(zip(tokens, kinds, strict=True))
    except (KeyError, ValueError) as error:
        raise ModelCorruptError(f"the GGUF file's tokenizer is not whole: {error}") from error
    return json.dumps(_document(typed, merges, _SPLITS[split]), ensure_ascii=False)


def end_ids(metadata: Mapping[str, Any]) -> list[int]:
    """Return the ids that the metadata calls ends of text."""
    keys = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")
    return [int(metadata[key]) for key in keys if key in metadata]


def _document(typed: list[tuple[str, int]], merges: list[list[str]], split: str) -> dict[str, Any]:
    """What is left out is so by default."""
    added_kinds = (_CONTROL, _USER_DEFINED)
    vocabulary = {
        token: index
        for index, (token, kind) in enumerate(typed)
        if kind not in (*added_kinds, _UNUSED)
    }
    added = [
        _AS_WRITTEN | {"id": index, "content": token, "special": kind == _CONTROL}
        for index, (token, kind) in enumerate(typed)
        if kind in added_kinds
    ]
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    pieces = {"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [pieces, byte_level]},
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    }
