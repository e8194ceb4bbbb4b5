"""Models of transformers run token trees as transformers itself runs each branch's plain text."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ConfigurationError, ModelCorruptError, UnsupportedModelError
from engine.model.causal_lm import prefill
from engine.model.token_tree import TokenTree
from engine.model.transformers.adapter import TransformersModel, load_transformers_model
from tests.support.greedy import reference_logits
from tests.support.steps import logits_of, read
from tests.support.tiny_models import save_model, tiny_model
from tests.support.trees import (
    PROMPT,
    assert_close,
    expected_logits,
    path_to,
    random_tree,
    tokens_to,
)

pytestmark = pytest.mark.usefixtures("one_thread")


def test_float64_is_rounded_once():
    """Identity tests need more digits inside than float32 has."""
    model = TransformersModel(tiny_model("llama", dtype=torch.float64))
    reference = tiny_model("llama", dtype=torch.float64)
    logits = read(model, model.new_slot(64), PROMPT)[0]
    assert logits.dtype == torch.float32
    assert torch.equal(logits, reference_logits(reference, PROMPT)[-1].float())


@pytest.mark.parametrize(
    "deviation",
    [
        {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1},
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0}},
    ],
    ids=["windows", "yarn"],
)
def test_runs_what_our_own_qwen2_refuses(deviation):
    model = TransformersModel(tiny_model("qwen2", **deviation))
    slot = model.new_slot(128)
    prefill(model, slot, PROMPT)
    tree = random_tree(np.random.default_rng(10), 24, model.vocab_size)
    expected = expected_logits(tiny_model("qwen2", **deviation), PROMPT, tree)
    assert_close(logits_of(model, slot, tree), expected)


SEQUENCES = st.lists(
    st.one_of(
        st.tuples(st.just("prefill"), st.integers(1, 12), st.integers(0, 99)),
        st.tuples(st.just("accept"), st.integers(1, 12), st.integers(0, 99)),
        st.tuples(st.just("truncate"), st.integers(0, 20), st.just(0)),
    ),
    max_size=8,
)


@pytest.fixture(scope="module")
def windowed():
    return TransformersModel(tiny_model("gemma3_text")), tiny_model("gemma3_text")


@settings(max_examples=25, deadline=None)
@given(sequence=SEQUENCES)
def test_any_sequence_of_calls_leaves_the_cache_of_its_text(windowed, sequence):
    model, reference = windowed
    slot = model.new_slot(128)
    text: list[int] = []
    for call, size, seed in sequence:
        rng = np.random.default_rng(seed)
        if call == "truncate":
            text = text[: max(0, len(text) - size)]
            slot.truncate(len(text))
        elif call == "prefill":
            tokens = rng.integers(model.vocab_size, size=size).tolist()
            prefill(model, slot, tokens)
            text += tokens
        else:
            tree = random_tree(rng, size, model.vocab_size)
            logits_of(model, slot, tree)
            last = int(rng.integers(size))
            slot.commit(path_to(tree, last))
            text += tokens_to(tree, last)
    logits = logits_of(model, slot, TokenTree.chain([42]))[0]
    assert_close(logits, reference_logits(reference, [*text, 42])[-1])


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        ("bloom", "its forward takes no position_ids"),
        ("gemma2", "its attention takes softcap"),
        ("gpt_oss", "its attention takes s_aux"),
        ("mamba", "its forward takes no position_ids"),
        ("qwen3_next", "it has layers of kind linear_attention"),
    ],
)
def test_says_why_a_model_cannot_run(family, reason):
    with pytest.raises(UnsupportedModelError, match=f"of type '{family}': {reason}"):
        TransformersModel(tiny_model(family, num_hidden_layers=4))


def test_refuses_a_model_with_an_attention_of_its_own(monkeypatch):
    network = tiny_model("llama")
    monkeypatch.setattr(network, "set_attn_implementation", lambda _: None)
    with pytest.raises(UnsupportedModelError, match="not attend through transformers' interface"):
        TransformersModel(network)


def test_loads_a_folder(tmp_path: Path) -> None:
    model = load_transformers_model(save_model(tiny_model("starcoder2"), tmp_path))
    assert (model.device, model.dtype_name, model.max_context) == ("cpu", "float32", 512)
    logits = read(model, model.new_slot(64), PROMPT)
    assert_close(logits[0], reference_logits(tiny_model("starcoder2"), PROMPT)[-1])


def test_reports_damaged_weights(tmp_path: Path) -> None:
    weights = save_model(tiny_model("llama"), tmp_path) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(ModelCorruptError, match="holds no whole model"):
        load_transformers_model(tmp_path)


def test_never_makes_up_weights_that_are_not_there(tmp_path: Path) -> None:
    """Left alone, transformers draws missing tensors at random and goes on."""
    config_path = save_model(tiny_model("llama", num_hidden_layers=2), tmp_path) / "config.json"
    config = json.loads(config_path.read_text())
    config_path.write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(ModelCorruptError, match="lacks whole tensors"):
        load_transformers_model(tmp_path)


def test_does_not_know_every_architecture(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "abacus"}))
    with pytest.raises(UnsupportedModelError, match="abacus"):
        load_transformers_model(tmp_path)


def test_holds_no_model_in_a_strange_dtype(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'int3' is none of float32, bfloat16"):
        load_transformers_model(tmp_path, dtype_name="int3")
