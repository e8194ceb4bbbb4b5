"""From a name to a model: converted for our own forward, or left for transformers."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from transformers.modeling_gguf_pytorch_utils import LlamaTensorProcessor

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.cpu.float_qwen2 import FloatQwen2
from engine.model.loader import load_model
from engine.model.loading.converted_model import FILE_FORMS, ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.gguf_file import GgufFile
from engine.model.loading.gguf_model import GgufModel
from engine.progress import Progress
from tests.support.byte_tokenizer import VOCAB_SIZE
from tests.support.fresh_interpreter import fresh_interpreter
from tests.support.greedy import reference_logits
from tests.support.int4_folder import quantize_folder
from tests.support.mutated_models import GgufParts
from tests.support.prepared import prepare
from tests.support.said import Said
from tests.support.steps import read
from tests.support.tiny_gguf import (
    HEADS,
    KV_HEADS,
    LAYERS,
    like_q4_k_m,
    tiny_tensors,
    write_tiny_gguf,
)
from tests.support.tiny_models import save_model, tiny_model
from tests.support.trees import PROMPT, assert_close


def test_a_file_in_fewer_bits_stays_as_it_is_where_a_gpu_reads_it_so(tmp_path: Path) -> None:
    """And whole weights are kept for a GPU in bfloat16."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf", hidden=256, mlp=256, kind_of=like_q4_k_m)
    assert prepare(str(path), FILE_FORMS, tmp_path, Progress()).quantization == FILE_FORMS
    folder = str(save_model(tiny_model("qwen2"), tmp_path / "whole"))
    assert prepare(folder, FILE_FORMS, tmp_path, Progress()).quantization == "bfloat16"


_RUNS = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = None
from pathlib import Path
from engine.model.loader import load_model
from engine.progress import Progress
loaded = load_model(sys.argv[1], Path(sys.argv[2]), Progress())
print(loaded.causal_lm.dtype_name, loaded.where)
"""


@pytest.mark.parametrize("kind", ["a GGUF file", "a folder in bfloat16", "a folder of GPTQ"])
def test_a_cpu_converts_and_runs_a_model_where_torch_is_not_installed(tmp_path, kind):
    if kind == "a GGUF file":
        path = write_tiny_gguf(tmp_path / "tiny.gguf")
    else:
        model = tiny_model("qwen2", 1, hidden_size=128, intermediate_size=256)
        path = save_model(model.bfloat16(), tmp_path / "folder")
        if kind == "a folder of GPTQ":
            quantize_folder(path, "gptq")
    assert fresh_interpreter(_RUNS, path, tmp_path).endswith("int8 CPU (no GPU found)")


def test_another_architecture_stays_where_it_is(tmp_path: Path) -> None:
    folder = save_model(tiny_model("mistral"), tmp_path / "mistral")
    said = Said()
    model = prepare(str(folder), "float32", tmp_path / "cache", said)
    assert isinstance(model, FolderModel)
    assert (model.folder, model.name) == (folder, "mistral")
    assert said.sentences == [
        "mistral is a MistralForCausalLM: transformers runs it, slower than our own forward pass would"
    ]
    assert model.tokenizer_document().plain
    assert model.fingerprint
    assert not (tmp_path / "cache").exists()


def test_a_llama_with_more_than_we_know_stays_where_it_is_and_says_why(tmp_path: Path) -> None:
    rope = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
    folder = save_model(tiny_model("llama", rope_parameters=rope), tmp_path / "long-llama")
    said = Said()
    assert isinstance(prepare(str(folder), "float32", tmp_path / "cache", said), FolderModel)
    assert said.sentences[0].startswith("long-llama has linear rotary embedding: transformers runs")


@pytest.mark.parametrize("quantization", ["int8", "float32"])
def test_a_llama_from_a_folder_is_run_by_us(tmp_path: Path, quantization: str) -> None:
    reference = tiny_model("llama", 3)
    folder = save_model(reference, tmp_path / "llama")
    model = prepare(str(folder), quantization, tmp_path / "cache", Progress())
    assert isinstance(model, ConvertedModel)
    assert not model.config.qkv_bias
    biases = [held for name, held in model.tensors().items() if name.endswith("bias")]
    assert not any(bias.any() for bias in biases)
    if quantization == "float32":
        own = FloatQwen2(model.config, model.tensors(), quantization)
        logits = read(own, own.new_slot(64), PROMPT)[0]
        assert_close(logits, reference_logits(reference, PROMPT)[-1])


def test_the_queries_and_keys_of_a_llama_in_a_gguf_file_are_put_in_our_order(tmp_path):
    """As transformers puts them, and as they were before the file was written."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf", architecture="llama")
    source, stored, written = GgufModel(path), GgufFile(path), tiny_tensors()
    heads = {"num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS}
    processor = LlamaTensorProcessor(heads)
    for layer, part in product(range(LAYERS), "qk"):
        name = f"blk.{layer}.attn_{part}.weight"
        tensor = source.read(f"model.layers.{layer}.self_attn.{part}_proj.weight")
        assert np.array_equal(tensor, processor.process(stored.read(name), name).weights)
        assert np.abs(tensor - written[name]).max() < 0.05  # what its few bits lose


def test_a_foreign_model_without_a_fast_tokenizer_says_how_to_get_one(tmp_path: Path) -> None:
    folder = save_model(tiny_model("mistral"), tmp_path / "mistral")
    (folder / "tokenizer.json").unlink()
    model = prepare(str(folder), "float32", tmp_path / "cache", Progress())
    with pytest.raises(UnsupportedModelError, match=r"holds no tokenizer\.json; transformers writ"):
        model.tokenizer_document()


def test_weights_that_are_missing_or_cut_are_refused(tmp_path: Path) -> None:
    folder = save_model(tiny_model("qwen2"), tmp_path / "qwen")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelCorruptError, match=r"model\.safetensors cannot be read"):
        prepare(str(folder), "float32", tmp_path / "cache", Progress())
    weights.unlink()
    with pytest.raises(UnsupportedModelError, match=r"holds no \.safetensors file"):
        prepare(str(folder), "float32", tmp_path / "cache", Progress())


@pytest.mark.parametrize(
    ("architecture", "entry", "words"),
    [
        ("gemma", {}, "holds a model of architecture gemma.*qwen2 and llama"),
        ("llama", {"rope.scaling.type": "linear", "rope.scaling.factor": 2}, "has linear rotary e"),
        ("llama", {"rope.scaling.factor": 4}, "has linear rotary e"),  # as llama.cpp reads it
        ("llama", {"rope.scale_linear": 4}, "has linear rotary e"),
        ("llama", {"rope.scaling.type": "yarn"}, "has yarn rotary e"),
        ("llama", {"rope.dimension_count": 8}, "has rotary embedding of a part of a head"),
        ("llama", {"expert_count": 8}, "has experts"),
    ],
)
def test_a_gguf_file_with_more_than_we_know_is_refused(tmp_path, architecture, entry, words):
    more = {f"{architecture}.{name}": value for name, value in entry.items()}
    path = write_tiny_gguf(tmp_path / "tiny.gguf", architecture=architecture, more=more)
    with pytest.raises(UnsupportedModelError, match=f"{words}.*folder or hub id"):
        prepare(str(path), "float32", tmp_path / "cache", Progress())


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(tmp_path: Path) -> None:
    """Rows of the embedding that are not there would be read."""
    folder = save_model(tiny_model("mistral", vocab_size=100), tmp_path / "short")
    with pytest.raises(ModelCorruptError, match=r"the tokenizer has \d+ tokens, more than the 100"):
        load_model(str(folder), tmp_path / "cache", Progress(), device_name="cpu")


def test_a_scaling_by_nothing_is_none(tmp_path):
    path = write_tiny_gguf(
        tmp_path / "tiny.gguf",
        more={"qwen2.rope.scaling.type": "linear", "qwen2.rope.scaling.factor": 1},
    )
    assert not GgufModel(path).config.deviations


@pytest.mark.parametrize("token_id", [VOCAB_SIZE, 10**6])
@pytest.mark.parametrize("family", ["qwen2", "mistral"])
def test_a_control_token_beyond_the_rows_of_the_embedding_is_plain_text(tmp_path, family, token_id):
    """A row that is not there would fail all requests of a forward."""
    folder = save_model(tiny_model(family), tmp_path / family)
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    token = {"id": token_id, "content": "<|far|>", "special": True}
    content["added_tokens"].append(content["added_tokens"][0] | token)
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    model = load_model(
        *(str(folder), tmp_path / "cache", Progress()),
        quantization="float32",
        device_name="cpu",
    )
    ids = model.tokenizer.encode_raw("a<|far|>b")
    assert ids == model.tokenizer.encode("a<|far|>b")
    assert max(ids) < model.causal_lm.vocab_size >= len(model.tokenizer.vocabulary)
    near = content["added_tokens"][0]
    assert model.tokenizer.encode_raw(near["content"]) == [near["id"]]


def test_a_start_token_beyond_the_rows_of_the_embedding_is_refused(tmp_path):
    more = {"tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.add_bos_token": True}
    path = write_tiny_gguf(tmp_path / "tiny.gguf", more=more)
    parts = GgufParts.read(path)
    for name in (b"token_embd.weight", b"output.weight"):
        next(one for one in parts.tensors if one[0] == name)[1][1] = 2
    parts.write(path)
    with pytest.raises(ModelCorruptError, match=r"tokenizer has \d+ tokens, more than the 2 of"):
        load_model(str(path), tmp_path, Progress(), quantization="float32", device_name="cpu")
