"""A CPU and a tiny model in the place of a GPU and of models of real shapes."""

from dataclasses import replace

import torch

from engine.bench.gpu.machine import Machine, host_ms
from engine.bench.gpu.shapes import SHAPES, Shape
from tests.support.byte_tokenizer import byte_tokenizer

TINY = Shape(
    "tiny",
    replace(
        SHAPES["0.5b"],
        num_layers=2,
        hidden_size=128,
        num_heads=4,
        head_dim=32,
        intermediate_size=256,
        vocab_size=byte_tokenizer().get_vocab_size(),
        tie_word_embeddings=False,
    ),
)


def cpu_machine() -> Machine:
    """Return a machine that reads 100 GB a second."""
    return Machine(torch.device("cpu"), torch.float32, host_ms, gb_per_s=100.0)
