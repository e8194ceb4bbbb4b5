import pytest
import torch

from engine.model.loading.folder_model import FolderModel
from engine.model.loading.gguf_model import GgufModel
from tests.bench.transformers_peer import GreedyTransformers
from tests.support.greedy import greedy
from tests.support.tiny_gguf import write_tiny_gguf
from tests.support.tiny_models import assembled, save_model, tiny_model

PROMPT = [5, 3, 8, 1, 30]


def test_a_folder_of_any_model_writes_greedily(tmp_path):
    model = tiny_model("llama")
    folder = save_model(model, tmp_path / "llama")
    generated = GreedyTransformers.load(FolderModel(folder, "llama"), "float32").generate(PROMPT, 6)
    assert list(generated.token_ids) == greedy(model, PROMPT, 6)
    assert generated.first_ms > 0
    assert generated.others_ms > 0


@pytest.mark.parametrize("architecture", ["qwen2", "llama"])
@pytest.mark.parametrize("tied", [True, False])
def test_a_gguf_file_holds_the_weights_that_our_own_forward_reads(tmp_path, tied, architecture):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", tied=tied, architecture=architecture)
    source = GgufModel(path)
    reference = assembled(source.config.to_hugging_face(), source.read)
    generated = GreedyTransformers.load(GgufModel(path), "float32").generate(PROMPT, 6)
    assert list(generated.token_ids) == greedy(reference, PROMPT, 6)


def test_an_end_token_ends_nothing(tmp_path):
    model = tiny_model("llama")
    first = greedy(model, PROMPT, 1)[0]
    model.generation_config.eos_token_id = first
    folder = save_model(model, tmp_path / "llama")
    generated = GreedyTransformers.load(FolderModel(folder, "llama"), "float32").generate(PROMPT, 6)
    assert len(generated.token_ids) == 6


def test_weights_are_held_in_the_dtype_that_was_asked_for(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    model = GreedyTransformers.load(GgufModel(path), "bfloat16")._model
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
