"""All layers in one launch have the bits of six launches a layer, phase by phase interpreted."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from triton import knobs

from engine.config import Sampling
from engine.drafting.drafter import NoDrafts
from engine.model.causal_lm import StepInput, prefill
from engine.model.gpu.batch_layout import SlotRange
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.persistent import layers_of, persistent_for
from engine.model.token_tree import MAX_ROWS
from kernels import batch_attention as sizes
from kernels.batch_attention import triton_kernel as attention
from kernels.operations import operations_for
from kernels.persistent_layers import triton_kernel
from tests.support.adversary import Adversary
from tests.support.block_weights import BLOCK_FORMS, random_blocks
from tests.support.fixed_order import products_in_one_order
from tests.support.gpu_models import gpu_qwen2
from tests.support.steps import decoded, decoder_behind, text_of
from tests.support.tiny_models import tiny_model
from tests.support.trees import random_tree

if knobs.runtime.interpret:
    import tests.support.triton_interpreter  # noqa: F401 - before any kernel is run

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(300)]
CONTEXT, PROGRAMS = 150, 3
DEVICE = torch.device("cpu" if knobs.runtime.interpret else "cuda")


@pytest.fixture(autouse=True)
def _few_splits_in_one_order(monkeypatch):
    """The interpreter takes its time for each program."""
    for module in (sizes, attention, triton_kernel):
        monkeypatch.setattr(module, "num_splits", lambda kv_heads: 4)
    with products_in_one_order():
        yield


def model_of(quantization="float", hidden_size=64):
    reference = tiny_model(
        "qwen2",
        1,
        num_attention_heads=4,
        num_key_value_heads=2,
        hidden_size=hidden_size,
        intermediate_size=96 if quantization == "float" and hidden_size == 64 else 2 * hidden_size,
        num_hidden_layers=2,
    )
    return gpu_qwen2(
        reference,
        dtype=torch.bfloat16,
        quantization=quantization,
        operations=operations_for(torch.device("cuda")),
        device=DEVICE,
    )


def with_blocks(model, form):
    """The model with random layers in a form of model files."""
    forward = model.graphs.forward

    def blocks(weight):
        return random_blocks(weight.num_outputs, weight.num_inputs, form, DEVICE)

    def layer_of(layer):
        names = ("qkv", "o", "gate_up", "down")
        return replace(layer, **{name: blocks(getattr(layer, name)) for name in names})

    layers = tuple(map(layer_of, forward.weights.layers))
    model.graphs.forward = replace(forward, weights=replace(forward.weights, layers=layers))
    return model


def persistent(forward):
    layers = triton_kernel.PersistentLayers.place(
        layers_of(forward), PROGRAMS, is_whole=not knobs.runtime.interpret
    )
    return replace(forward, persistent=layers)


@pytest.mark.parametrize(
    ("rows", "quantization"),
    [
        *((rows, "float") for rows in (1, 2, 4, 8, 16)),
        *((rows, "fp8") for rows in (1, 4)),
        *((1, form) for form in ("q8_0", "q4_k")),
    ],
)
def test_all_that_a_step_writes_has_the_same_bits(rows, quantization):
    if quantization in BLOCK_FORMS:
        model = with_blocks(model_of(hidden_size=256), quantization)
    else:
        model = model_of(quantization)
    arena = model.arena
    cache = [torch.randn_like(arena.keys) for _ in range(2)]
    memory = model.graphs.launch(StepShape(rows, 1)).memory
    tree = random_tree(np.random.default_rng(rows), rows, model.vocab_size)
    memory.inputs.pack([StepInput(SlotRange(0, CONTEXT), tree)])

    def written(forward):
        arena.keys.copy_(cache[0])
        arena.values.copy_(cache[1])
        flow = memory.activations.flow
        for part in (flow.queries, flow.attended, flow.hidden, forward.scratch.partials):
            part.fill_(torch.nan)
        forward.run(memory)
        assert not forward.scratch.arrived.any()
        stream, best = flow.stream, memory.activations.best
        parts = (
            flow.queries,
            flow.attended,
            flow.hidden,
            stream.residual,
            stream.normed,
            stream.squares,
            arena.keys,
        )
        return [part.clone() for part in (*parts, arena.values, best.scores, best.sums)]

    usual = written(model.graphs.forward)
    for one, other in zip(written(persistent(model.graphs.forward)), usual, strict=True):
        assert torch.equal(one.view(torch.uint8), other.view(torch.uint8))


PROMPT = [int(token) for token in np.random.default_rng(1).integers(7, 290, 61)]
COUNT = 6


def decode(model, drafter):
    slot = model.new_slot(len(PROMPT) + COUNT + 2 * MAX_ROWS)
    prefill(model, slot, PROMPT[:-1])
    return text_of(decoded(model, decoder_behind(slot, drafter, Sampling(), PROMPT, COUNT)))


def test_drafts_do_not_change_the_text_whichever_form_a_step_runs_in():
    """Steps of 24 rows and the prompt's take six launches a layer, those of one row one for all."""
    model = model_of()
    usual = decode(model, NoDrafts())
    model = model_of()
    model.graphs.forward = persistent(model.graphs.forward)
    assert decode(model, NoDrafts()) == usual
    adversary = Adversary(usual, len(PROMPT), model.vocab_size, 24, 0.6, seed=2)
    assert decode(model, adversary)[:COUNT] == usual


def test_a_cpu_has_no_persistent_launch():
    if DEVICE.type == "cpu":
        assert persistent_for(model_of().graphs.forward) is None
