"""An embedding that is not the head, too, stays on the host, and a step's rows go up with it."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.model.causal_lm import StepInput
from engine.model.gpu.arena import KVArena
from engine.model.gpu.buffers import Inputs, StepShape
from engine.model.gpu.embedding import Embedding
from engine.model.gpu.loading import assemble
from engine.model.gpu.weights import GpuWeights
from engine.model.loading.float_packing import pack_own_forms
from engine.model.model_config import ModelConfig
from engine.model.token_tree import TokenTree
from kernels.operations import PORTABLE
from kernels.weight import Quantization, pack
from tests.support.block_weights import random_blocks
from tests.support.gpu_models import gpu_qwen2
from tests.support.steps import logits_behind
from tests.support.tiny_models import tiny_model
from tests.support.trees import random_tree

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")
FORMS: tuple[Quantization, ...] = ("q8_0", "q4_k", "q6_k", "q6_k_min")


def untied():
    return tiny_model("qwen2", 1, tie_word_embeddings=False)


@pytest.mark.parametrize(
    ("tied", "quantization", "is_on_host"),
    [(False, "float", True), (True, "float", False), (True, "fp8", True)],
)
def test_only_what_no_step_reads_as_a_whole_stays_on_the_host(tied, quantization, is_on_host):
    model = gpu_qwen2(tiny_model("qwen2", 1, tie_word_embeddings=tied), quantization=quantization)
    weights = model.graphs.forward.weights
    assert weights.embedding.is_on_host == is_on_host
    assert (weights.head is weights.embedding.table) != is_on_host


def test_it_stays_where_the_file_is_mapped():
    reference = untied()
    config = ModelConfig.from_hugging_face(reference.config.to_dict())
    tensors = dict(pack_own_forms(config, reference.state_dict().__getitem__, dtype=torch.float32))
    weights = GpuWeights.place(config, tensors, "float", torch.float32, CPU)
    assert weights.embedding.table.values.data_ptr() == tensors["embedding"].data_ptr()


@pytest.mark.parametrize("operations", [None, PORTABLE], ids=["as a GPU", "portable"])
def test_a_step_says_what_it_says_with_the_table_beside_it(operations):
    """To the bit: the rows are sent as they are, whatever the order of a tree."""
    hosted = gpu_qwen2(untied(), operations=operations)
    forward = hosted.graphs.forward
    table = replace(forward.weights.embedding, is_on_host=False)
    beside = assemble(
        forward.config,
        replace(forward.weights, embedding=table),
        KVArena(forward.config, 1024, torch.float32, CPU),
        torch.float32,
        operations,
    )
    tree = random_tree(np.random.default_rng(3), 11, hosted.vocab_size)
    assert torch.equal(*(logits_behind(one, range(20, 57), tree) for one in (hosted, beside)))


TABLES = {
    "float32": lambda: pack(torch.randn(50, 24), "float"),
    "bfloat16": lambda: pack(torch.randn(50, 24).bfloat16(), "float"),
} | {form: partial(random_blocks, 50, 512, form) for form in FORMS}


@pytest.mark.parametrize("table", TABLES)
def test_rows_of_several_sequences_have_the_embeddings_of_their_tokens(table):
    """In the form of the file, so that the device unpacks them as it would in the whole table."""
    embedding = Embedding.on_host(TABLES[table]())
    inputs = Inputs(StepShape(16, 4), 2, CPU, embedding)
    star = TokenTree(np.array([5, 6, 7, 8]), np.array([-1, 0, 0, 1], np.int32))
    slots = [
        SimpleNamespace(base=0, length=3, kept=None),
        SimpleNamespace(base=64, length=9, kept=None),
    ]
    inputs.pack([StepInput(slot, star) for slot in slots])
    inputs.upload()
    tokens, table = inputs.lookup
    assert inputs.batch.tokens[:8].tolist() == [5, 6, 8, 7] * 2
    expected = embedding.table.rows(inputs.batch.tokens[:8].long())
    assert torch.equal(table.rows(tokens.long())[:8], expected)
    assert table.rows(tokens.long()).isfinite().all()
