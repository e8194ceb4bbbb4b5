"""Our own Qwen2 forward: the reference's logits, and one row's bits whatever rides beside it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.errors import ModelCorruptError
from engine.model.causal_lm import CacheSlot, CausalModel, prefill
from engine.model.cpu.int8_qwen2 import Int8Qwen2
from engine.model.loading.catalog import on_disk
from engine.model.model_config import ModelConfig
from engine.model.token_tree import TokenTree
from engine.model.tokenizer import Tokenizer
from engine.offline_parts import OFFLINE_MODELS
from engine.progress import Progress
from kernels.cpu_forward import BLOCK
from kernels.cpu_forward.processor import host_unit
from tests.support.greedy import reference_logits
from tests.support.own_qwen2 import own_qwen2
from tests.support.packed import packed_arrays
from tests.support.steps import logits_of, read
from tests.support.tiny_models import assembled, tiny_model
from tests.support.trees import PROMPT, assert_close, expected_logits, path_to, random_tree

# Of logits by 8 bits to exact ones; processors without dot products of bytes take activations of 7.
NEAR = 0.99 if host_unit().levels > 63 else 0.98

OFFLINE = {  # of the offline model's config.json, with four of its layers
    "model_type": "qwen2",
    "num_hidden_layers": 4,
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "rope_theta": 1e6,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
}


def test_refuses_a_head_that_has_not_a_row_for_each_token():
    """Its scores would be written behind the room for them."""
    reference = tiny_model("qwen2", 1)
    config = ModelConfig.from_hugging_face(reference.config.to_dict())
    arrays = packed_arrays(config, lambda name: reference.state_dict()[name].numpy())
    for size in (config.vocab_size - BLOCK, config.vocab_size + BLOCK):
        with pytest.raises(ModelCorruptError, match=f"does not fit its {size} tokens"):
            Int8Qwen2(replace(config, vocab_size=size), arrays, arrays["embedding"], threads=1)


@pytest.fixture(scope="module")
def packed():
    """A model in 8 bits, with several panels and groups in each matrix."""
    reference = tiny_model(
        "qwen2",
        hidden_size=448,
        intermediate_size=1216,
        num_hidden_layers=2,
        num_attention_heads=7,
        num_key_value_heads=1,
        tie_word_embeddings=True,
        max_position_embeddings=2048,
    )
    return own_qwen2(reference, "int8"), reference


def assert_near(model, reference):
    logits = read(model, model.new_slot(64), PROMPT)[0]
    expected = reference_logits(reference, PROMPT)[-1]
    assert torch.corrcoef(torch.stack([logits, expected]))[0, 1] > NEAR


def test_eight_bits_stay_near_the_reference(packed):
    assert_near(*packed)


@pytest.mark.parametrize("num_heads", [7, 4, 8], ids=["as wide as the rest", "narrower", "wider"])
def test_eight_bits_of_a_llama_stay_near_the_reference(num_heads):
    """With a width between the layers that is no multiple of 128, as in Mellum-4b."""
    reference = tiny_model(
        "llama",
        hidden_size=448,
        intermediate_size=1344,
        num_attention_heads=num_heads,
        num_key_value_heads=num_heads,
        head_dim=64,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
    )
    assert_near(own_qwen2(reference, "int8"), reference)


def decode(model: CausalModel, slot: CacheSlot, tokens: list[int]) -> torch.Tensor:
    """Feed `tokens` as plain decoding does, one row a step. Logits [tokens, vocab]."""
    rows = []
    for token in tokens:
        rows.append(logits_of(model, slot, TokenTree.chain([token]))[0])
        slot.commit([0])
    return torch.stack(rows)


@pytest.mark.parametrize("prompt_len", [40, 509])
@pytest.mark.parametrize("num_rows", [2, 3, 5, 8, 17, 64, 128])
def test_a_row_has_the_bits_of_plain_decoding(packed, prompt_len, num_rows):
    """The promise of identical text."""
    model, _ = packed
    rng = np.random.default_rng(num_rows)
    slot = model.new_slot(1024)
    prefill(model, slot, rng.integers(7, 290, size=prompt_len).tolist())
    tree = random_tree(rng, num_rows, model.vocab_size)
    logits = logits_of(model, slot, tree)
    for row in {num_rows - 1, int(tree.depths.argmax()), int(rng.integers(num_rows))}:
        path = path_to(tree, row)
        assert torch.equal(logits[path], decode(model, slot, tree.token_ids[path].tolist()))
        slot.truncate(prompt_len)


def test_bits_stay_equal_step_after_step(packed):
    """Accepted rows leave the keys that plain decoding leaves."""
    model, _ = packed
    rng = np.random.default_rng(9)
    slot, plain = model.new_slot(1024), model.new_slot(1024)
    prefill(model, slot, PROMPT)
    prefill(model, plain, PROMPT)
    for num_rows in (16, 33, 7, 64, 2, 100, 20):
        tree = random_tree(rng, num_rows, model.vocab_size)
        logits = logits_of(model, slot, tree)
        path = path_to(tree, int(tree.depths.argmax()))
        slot.commit(path)
        assert torch.equal(logits[path], decode(model, plain, tree.token_ids[path].tolist()))


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """The offline model in float32 in both implementations, four of its layers."""
    folder = tmp_path_factory.mktemp("offline")
    source = on_disk(OFFLINE_MODELS["offline"], folder, Progress())
    reference = assembled(OFFLINE, lambda name: torch.from_numpy(source.read(name)))
    prompt = Tokenizer(source.tokenizer_document()).encode("def mean(values):\n    return sum(")
    return own_qwen2(reference, "float32"), reference, prompt


@pytest.mark.model
@pytest.mark.timeout(300)  # decodes the weights first
def test_the_offline_model_has_the_reference_logits(offline):
    model, reference, prompt = offline
    slot = model.new_slot(128)
    assert_close(read(model, slot, prompt)[0], reference_logits(reference, prompt)[-1])
    tree = random_tree(np.random.default_rng(8), 6, 2000)
    assert_close(logits_of(model, slot, tree), expected_logits(reference, prompt, tree))


def test_a_small_model_keeps_prompts_in_what_they_take_and_a_large_one_in_what_any_may(packed):
    model, _ = packed
    slot = model.new_slot(100)
    slot.commit(range(100))
    assert model.kv_bytes(100) == slot.num_bytes
    assert model.kv_bytes(10**9) == 240 * 1024 * 1024
