"""What does not fit its configuration is refused before it is converted, and converted anew if kept."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import ForegramError, ModelCorruptError
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.loaded_model import prepare
from engine.progress import NoProgress
from tests.support.int4_folder import quantize_folder
from tests.support.mutated_models import GgufParts
from tests.support.tiny_gguf import write_tiny_gguf
from tests.support.tiny_models import save_model, tiny_model

_FORMS = ("int8", "float32", "file")


class _Said(NoProgress):
    """Remembers the sentences."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def tell(self, sentence: str) -> None:
        self.sentences.append(sentence)


def _refusal(path: Path, cache: Path, form: str = "int8") -> str:
    with pytest.raises(ForegramError) as refused:
        prepare(str(path), form, cache, NoProgress())
    entries = [one.name for one in (cache / "models").iterdir() if one.suffix != ".lock"]
    assert entries == []
    return str(refused.value)


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize(
    ("tensor", "dims"),
    [
        (b"blk.1.attn_output.weight", [128, 64]),
        (b"blk.0.ffn_norm.weight", [32]),
        (b"blk.1.attn_k.bias", [64]),
        (b"blk.0.ffn_up.weight", [64, 128]),
        (b"output.weight", [64, 192]),
    ],
)
def test_a_tensor_of_another_shape_in_a_gguf_file_is_named(
    tmp_path: Path, tensor: bytes, dims: list[int], form: str
) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    parts = GgufParts.read(path)
    held = next(one for one in parts.tensors if one[0] == tensor)
    held[1], expected = dims, held[1]
    parts.write(path)
    sentence = _refusal(path, tmp_path, form)
    shapes = [" x ".join(map(str, reversed(one))) for one in (dims, expected)]
    assert f"has the shape {shapes[0]}, and its configuration asks for {shapes[1]}" in sentence


@pytest.mark.parametrize(
    ("entry", "number", "words"),
    [
        (b"qwen2.attention.head_count", 6, "self_attn.q_proj.weight"),
        (b"qwen2.attention.head_count", 64, "odd size 1"),
        (b"qwen2.attention.head_count_kv", 4, "self_attn.k_proj.weight"),
        (b"qwen2.embedding_length", 96, "embed_tokens.weight"),
        (b"qwen2.feed_forward_length", 64, "mlp.gate_proj.weight"),
        (b"qwen2.block_count", 1, "more layers than the 1"),
        (b"qwen2.block_count", 3, "lacks the tensor blk.2."),
        (b"qwen2.context_length", 5, "a context of 5 tokens"),
    ],
)
def test_a_number_of_the_configuration_that_no_tensor_fits_is_refused(
    tmp_path: Path, entry: bytes, number: int, words: str
) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    parts = GgufParts.read(path)
    parts.entries = [
        (key, kind, number.to_bytes(4, "little") if key == entry else value)
        for key, kind, value in parts.entries
    ]
    parts.write(path)
    assert words in _refusal(path, tmp_path)


def _wide(tensors: dict[str, torch.Tensor]) -> None:
    name = "model.layers.1.self_attn.o_proj.weight"
    tensors[name] = torch.zeros(32, 64)


def _of_integers(tensors: dict[str, torch.Tensor]) -> None:
    name = "model.layers.0.mlp.up_proj.weight"
    tensors[name] = tensors[name].to(torch.int8)


def _short(tensors: dict[str, torch.Tensor]) -> None:
    tensors["model.embed_tokens.weight"] = tensors["model.embed_tokens.weight"][:-1].clone()


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_wide, "has the shape 32 x 64, and its configuration asks for 32 x 32"),
        (_of_integers, "is of the type I8, which is not read"),
        (_short, "embed_tokens.weight has the shape"),
    ],
)
def test_a_tensor_that_does_not_fit_in_a_folder_is_named(
    tmp_path: Path, change: Callable[[dict[str, torch.Tensor]], None], words: str, form: str
) -> None:
    folder = save_model(tiny_model("qwen2", tie_word_embeddings=True), tmp_path / "tiny")
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")
    assert words in _refusal(folder, tmp_path, form)


@pytest.mark.parametrize("method", ["gptq", "awq"])
@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("qweight", "has the shape"),
        ("qzeros", "do not fit each other"),
        ("scales", "do not fit each other"),
    ],
)
def test_parts_of_four_bits_that_do_not_fit_each_other_are_refused(
    tmp_path: Path, method: str, part: str, words: str
) -> None:
    folder = save_model(
        tiny_model("qwen2", hidden_size=128, intermediate_size=256), tmp_path / method
    )
    quantize_folder(folder, method)
    tensors = load_file(folder / "model.safetensors")
    name = f"model.layers.1.mlp.up_proj.{part}"
    tensors[name] = torch.cat([tensors[name], tensors[name]], dim=1)
    save_file(tensors, folder / "model.safetensors")
    assert words in _refusal(folder, tmp_path)


@pytest.mark.parametrize("form", _FORMS)
def test_a_kept_conversion_whose_shapes_were_changed_is_made_anew_with_one_sentence(
    tmp_path: Path, form: str
) -> None:
    """Though neither its size nor its time tells."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    kept = prepare(str(path), form, tmp_path, NoProgress())
    assert isinstance(kept, ConvertedModel)
    weights = kept.folder / "model.safetensors"
    stat, content = weights.stat(), weights.read_bytes()
    weights.write_bytes(content.replace(b'"shape":[64]', b'"shape":[46]', 1))
    assert weights.read_bytes() != content
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(ModelCorruptError, match="is damaged: it begins in another way"):
        ConvertedModel.load(kept.folder)
    said = _Said()
    assert isinstance(prepare(str(path), form, tmp_path, said), ConvertedModel)
    assert weights.read_bytes() == content
    (sentence,) = set(said.sentences)
    assert sentence.startswith("the model is converted anew: ")


def test_what_a_version_that_compared_nothing_has_kept_is_not_taken(
    tmp_path: Path,
) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    kept = prepare(str(path), "int8", tmp_path, NoProgress())
    assert isinstance(kept, ConvertedModel)
    old = kept.folder.with_name(kept.folder.name.replace("-v3", "-v2"))
    kept.folder.rename(old)
    assert isinstance(prepare(str(path), "int8", tmp_path, NoProgress()), ConvertedModel)
    assert not old.exists()
