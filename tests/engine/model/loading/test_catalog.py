"""A model's name is an alias, a folder, a file or a hub id; anything else is explained."""

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import ForegramError, ModelCorruptError, ModelNotFoundError
from engine.model.loading import catalog
from engine.model.loading.catalog import locate, on_disk
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.gguf_model import GgufModel
from engine.model_names import HUB_ALIASES, SMALLEST_MODEL, holds_gguf
from engine.offline_parts import EmbeddedModel
from engine.progress import Progress
from tests.support.int4_folder import quantize_folder
from tests.support.mutated_models import GgufParts
from tests.support.prepared import prepare
from tests.support.said import Said
from tests.support.tiny_gguf import LAYERS, write_tiny_gguf
from tests.support.tiny_models import save_model, tiny_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tiny_model("qwen2"), tmp_path_factory.mktemp("models") / "tiny-qwen")


@pytest.fixture
def hub_requests(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """The repositories asked for, all of which are the tiny folder."""
    requests: list[str] = []

    def hub_folder(repository: str, progress: Progress) -> Path:
        requests.append(repository)
        return folder

    monkeypatch.setattr(catalog, "hub_folder", hub_folder)
    return requests


def test_the_default_is_embedded() -> None:
    located = locate(SMALLEST_MODEL)
    assert isinstance(located, EmbeddedModel)
    assert located.name == "Qwen2.5-Coder-0.5B-Instruct"


@pytest.mark.parametrize("alias", [one for one in HUB_ALIASES if not holds_gguf(HUB_ALIASES[one])])
def test_an_alias_names_a_model_of_the_hub(hub_requests: list[str], alias: str) -> None:
    located = locate(alias)
    owners = {"seed": "ByteDance-Seed", "mellum": "JetBrains"}
    owners |= {"sweep": "sweepai", "zeta": "zed-industries"}
    assert hub_requests == [HUB_ALIASES[alias]] == [located.name]
    owner, _, title = located.name.partition("/")
    words = alias.split("-")
    assert owner == owners.get(words[0], "Qwen")
    assert set(words) <= set(title.lower().split("-"))


def test_a_folder_here_does_not_take_the_place_of_a_model_of_the_hub(
    folder: Path, hub_requests: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that an editor is started in may ship one of that name."""
    monkeypatch.chdir(folder.parent.parent)
    name = f"{folder.parent.name}/{folder.name}"
    assert locate(name).name == name
    assert hub_requests == [name]


@pytest.mark.parametrize("begin", ["./", "../{here}/", "{parent}/"])
def test_a_folder_is_written_as_a_path(folder, hub_requests, monkeypatch, begin):
    monkeypatch.chdir(folder.parent)
    located = locate(begin.format(here=folder.parent.name, parent=folder.parent) + folder.name)
    assert isinstance(located, FolderModel)
    assert (located.name, hub_requests) == ("tiny-qwen", [])
    assert not located.lack
    assert on_disk(located, folder, Progress()) is located


def test_a_hub_id_that_is_not_found_tells_how_the_folder_of_that_name_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hub_folder(repository: str, progress: Progress) -> Path:
        raise ModelNotFoundError(f"{repository} is not there")

    monkeypatch.setattr(catalog, "hub_folder", hub_folder)
    monkeypatch.chdir(folder.parent.parent)
    name = f"{folder.parent.name}/{folder.name}"
    with pytest.raises(ModelNotFoundError, match=re.escape(f"is written ./{name}")):
        locate(name)
    with pytest.raises(ModelNotFoundError, match=r"is not there$"):
        locate("nobody/nothing")


def test_a_gguf_file_is_opened(tmp_path: Path) -> None:
    located = locate(str(write_tiny_gguf(tmp_path / "tiny.gguf")))
    assert isinstance(located, GgufModel)
    assert located.name == "tiny"
    assert on_disk(located, tmp_path, Progress()) is located
    assert located.config.num_layers == LAYERS


def test_an_unknown_name_says_what_exists_and_what_to_write_also_where_there_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFoundError) as caught:
        locate("0.6b")
    message = str(caught.value)
    for part in ("'0.6b'", "`0.5b`", "`1.5b`", "owner/name", "its path"):
        assert part in message
    assert "--model" not in message


@pytest.mark.parametrize("name", ["", "a/b/c", "no such model", "../x", "http://x/y"])
def test_what_can_be_no_name_never_reaches_the_hub(name: str, hub_requests: list[str]) -> None:
    with pytest.raises(ModelNotFoundError):
        locate(name)
    assert not hub_requests


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.gguf", r"there is no file .*missing\.gguf"),
        ("model.bin", r"model\.bin is no \.gguf file"),
        ("", r"holds no config\.json"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(ModelNotFoundError, match=words):
        locate(str(tmp_path / name))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"architectures": []}', "\x00\xff"])
def test_a_garbled_configuration_is_an_error_of_ours(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content, "latin-1")
    located = locate(str(tmp_path))
    assert isinstance(located, FolderModel)
    with pytest.raises(ModelCorruptError, match=r"config\.json"):
        _ = located.lack


def test_fingerprints_follow_the_files(folder: Path, tmp_path: Path) -> None:
    located = locate(str(folder))
    before = located.fingerprint
    assert before == locate(str(folder)).fingerprint
    (folder / "generation_config.json").write_text('{"eos_token_id": 3}')
    assert located.fingerprint != before
    gguf = GgufModel(write_tiny_gguf(tmp_path / "tiny.gguf"))
    before = gguf.fingerprint
    with gguf.path.open("ab") as file:
        file.write(b"more")
    assert gguf.fingerprint != before


def test_a_file_that_vanishes_or_may_not_be_read_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ModelCorruptError, match=r"gone\.gguf cannot be read"):
        _ = GgufModel(tmp_path / "gone.gguf").fingerprint


def _refusal(path: Path, cache: Path) -> str:
    with pytest.raises(ForegramError) as refused:
        prepare(str(path), "int8", cache, Progress())
    entries = [one.name for one in (cache / "models").iterdir() if one.suffix != ".lock"]
    assert entries == []
    return str(refused.value)


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
def test_a_tensor_of_another_shape_in_a_gguf_file_is_named(tmp_path, tensor, dims):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    parts = GgufParts.read(path)
    held = next(one for one in parts.tensors if one[0] == tensor)
    held[1], expected = dims, held[1]
    parts.write(path)
    sentence = _refusal(path, tmp_path)
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


@pytest.mark.parametrize(
    ("tensor", "changed", "words"),
    [
        (
            "layers.1.self_attn.o_proj",
            lambda whole: torch.cat([whole, whole], dim=1),
            "has the shape 32 x 64, and its configuration asks for 32 x 32",
        ),
        ("layers.0.mlp.up_proj", torch.Tensor.char, "is of the type I8, which is not read"),
        ("embed_tokens", lambda whole: whole[:-1].clone(), "embed_tokens.weight has the shape"),
    ],
)
def test_a_tensor_that_does_not_fit_in_a_folder_is_named(tmp_path, tensor, changed, words):
    folder = save_model(tiny_model("qwen2", tie_word_embeddings=True), tmp_path / "tiny")
    tensors = load_file(folder / "model.safetensors")
    name = f"model.{tensor}.weight"
    save_file(tensors | {name: changed(tensors[name])}, folder / "model.safetensors")
    assert words in _refusal(folder, tmp_path)


@pytest.mark.parametrize("method", ["gptq", "awq"])
@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("qweight", "has the shape"),
        ("qzeros", "do not fit each other"),
        ("scales", "do not fit each other"),
    ],
)
def test_parts_of_four_bits_that_do_not_fit_each_other_are_refused(tmp_path, method, part, words):
    folder = save_model(
        tiny_model("qwen2", hidden_size=128, intermediate_size=256), tmp_path / method
    )
    quantize_folder(folder, method)
    tensors = load_file(folder / "model.safetensors")
    name = f"model.layers.1.mlp.up_proj.{part}"
    tensors[name] = torch.cat([tensors[name], tensors[name]], dim=1)
    save_file(tensors, folder / "model.safetensors")
    assert words in _refusal(folder, tmp_path)


@pytest.mark.parametrize("form", ["int8", "file"])
def test_a_kept_conversion_whose_shapes_were_changed_is_made_anew_with_one_sentence(tmp_path, form):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    kept = prepare(str(path), form, tmp_path, Progress())
    assert isinstance(kept, ConvertedModel)
    manifest = kept.folder / "manifest.json"
    content = manifest.read_bytes()
    manifest.write_bytes(content.replace(b'"shape":[', b'"shape":[1', 1))
    assert manifest.read_bytes() != content
    with pytest.raises(ModelCorruptError, match="is damaged: its sum is not the known one"):
        ConvertedModel.load(kept.folder)
    said = Said()
    again = prepare(str(path), form, tmp_path, said)
    assert isinstance(again, ConvertedModel)
    assert again.places == kept.places
    (sentence,) = set(said.sentences)
    assert sentence.startswith("the model is converted anew: ")
