"""A small Qwen2 of random numbers in a folder: what is measured with it is all but the model.

Its tokenizer is trained on the texts that are going to be completed, so that a text has about as
many tokens as with a real one. What it writes says nothing.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from engine.model.loading.gguf_tokenizer import SPLITS
from engine.model.loading.tensor_shapes import shapes_of
from engine.model.model_config import ModelConfig

_CONTROL_TOKENS = (
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|repo_name|>",
    "<|file_sep|>",
)
# How Qwen cuts text into words. No word goes on behind a line end: what the host does line by line
# it could not do with the usual cut of byte-level tokenizers.
_WORD = Regex(SPLITS["qwen2"][0])
_VOCAB_SIZE = 4096
_TRAINED_CHARS = 1_000_000
_NUM_LAYERS, _HIDDEN_SIZE, _NUM_HEADS, _NUM_KV_HEADS = 1, 64, 4, 2
_DEVIATION = 0.3  # of the weights: large enough that one token is likelier than another


def write_random_model(folder: Path, texts: Iterable[str]) -> None:
    """Write config.json, tokenizer.json and the weights. The same texts make the same model."""
    tokenizer = _trained(texts)
    config = _config(tokenizer.get_vocab_size())
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.ones(shape)
        if name.endswith("norm.weight")
        else _DEVIATION * torch.randn(shape, generator=generator)
        for name, shape in shapes_of(config)
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config.to_hugging_face()))
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file(weights, folder / "model.safetensors")


def _trained(texts: Iterable[str]) -> Tokenizer:
    """A byte-level tokenizer with the words and the control tokens of Qwen."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(_WORD, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCAB_SIZE,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(text, normalized=False) for text in _CONTROL_TOKENS],
        show_progress=False,
    )
    tokenizer.train_from_iterator(_some(texts), trainer)
    return tokenizer


def _some(texts: Iterable[str]) -> Iterator[str]:
    """As many as are enough to train on."""
    room = _TRAINED_CHARS
    for text in texts:
        yield text[:room]
        room -= len(text)
        if room <= 0:
            return


def _config(vocab_size: int) -> ModelConfig:
    return ModelConfig(
        num_layers=_NUM_LAYERS,
        hidden_size=_HIDDEN_SIZE,
        num_heads=_NUM_HEADS,
        num_kv_heads=_NUM_KV_HEADS,
        head_dim=_HIDDEN_SIZE // _NUM_HEADS,
        intermediate_size=2 * _HIDDEN_SIZE,
        vocab_size=vocab_size,
        rope_theta=1e6,
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        max_position=32768,
    )
