"""From a name to a model: converted for our own forward, or left for transformers."""

from pathlib import Path

import pytest

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.loaded_model import prepare
from engine.progress import NoProgress
from tests.support.tiny_gguf import write_tiny_gguf
from tests.support.tiny_models import save_model, tiny_model


def test_a_qwen2_is_converted(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    model = prepare(str(path), "float32", tmp_path / "cache", NoProgress())
    assert isinstance(model, ConvertedModel)
    assert model.folder.parent == tmp_path / "cache" / "models"


def test_another_architecture_stays_where_it_is(tmp_path: Path) -> None:
    folder = save_model(tiny_model("llama"), tmp_path / "llama")
    model = prepare(str(folder), "float32", tmp_path / "cache", NoProgress())
    assert isinstance(model, FolderModel)
    assert (model.folder, model.name, model.architecture) == (folder, "llama", "LlamaForCausalLM")
    assert model.tokenizer().decode(model.tokenizer().encode("def f():")) == "def f():"
    assert model.fingerprint
    assert not (tmp_path / "cache").exists()


def test_a_foreign_model_without_a_fast_tokenizer_says_how_to_get_one(tmp_path: Path) -> None:
    folder = save_model(tiny_model("llama"), tmp_path / "llama")
    (folder / "tokenizer.json").unlink()
    model = prepare(str(folder), "float32", tmp_path / "cache", NoProgress())
    with pytest.raises(UnsupportedModelError, match=r"holds no tokenizer\.json; transformers writ"):
        model.tokenizer()


def test_weights_that_are_missing_or_cut_are_refused(tmp_path: Path) -> None:
    folder = save_model(tiny_model("qwen2"), tmp_path / "qwen")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelCorruptError, match=r"model\.safetensors cannot be read"):
        prepare(str(folder), "float32", tmp_path / "cache", NoProgress())
    weights.unlink()
    with pytest.raises(UnsupportedModelError, match=r"holds no \.safetensors file"):
        prepare(str(folder), "float32", tmp_path / "cache", NoProgress())


def test_a_gguf_file_of_another_architecture_is_refused(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf", architecture="llama")
    with pytest.raises(UnsupportedModelError, match=r"architecture llama.*folder or hub id"):
        prepare(str(path), "float32", tmp_path / "cache", NoProgress())
