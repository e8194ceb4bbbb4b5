"""A tiny model on the CPU in the GPU's place: the same sections, PyTorch's kernels."""

from dataclasses import replace

import pytest
import torch

from engine.bench.gpu.lab import Lab
from engine.bench.gpu.machine import Bandwidth, Machine, host_ms
from engine.bench.gpu.run import Sizes
from engine.bench.gpu.shapes import SHAPES, Shape
from engine.progress import NoProgress
from tests.support.byte_tokenizer import byte_tokenizer
from tests.support.replayed import replay_item

BODY = "    total = first + second\n    return total * 2\n"


@pytest.fixture(autouse=True)
def _one_thread(one_thread):
    """Tiny tensors want no threads."""


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="session")
def shape():
    config = replace(
        SHAPES["0.5b"],
        num_layers=2,
        hidden_size=128,
        num_heads=4,
        head_dim=32,
        intermediate_size=256,
        vocab_size=byte_tokenizer().get_vocab_size(),
        tie_word_embeddings=False,
    )
    return Shape("tiny", config)


@pytest.fixture(scope="session")
def machine():
    return Machine(torch.device("cpu"), torch.float32, host_ms)


@pytest.fixture
def lab(machine):
    return Lab(machine, NoProgress(), Bandwidth(100.0))


@pytest.fixture(scope="session")
def items():
    completion = replay_item(BODY)
    return [completion, replace(completion, id="edit/p/1/p/a.py:2", kind="edit")]


@pytest.fixture(scope="session")
def sizes():
    return Sizes(rows=(1, 8), contexts=(16, 64), prompts=(96,), numbers=100_000, items=1)
