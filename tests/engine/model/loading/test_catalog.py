"""A model's name is an alias, a folder, a file or a hub id; anything else is explained."""

import re
from pathlib import Path

import pytest

from engine.errors import ModelCorruptError, ModelNotFoundError
from engine.model.loading import catalog
from engine.model.loading.catalog import locate, on_disk
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.gguf_model import GgufModel
from engine.model_names import DEFAULT_MODEL, HUB_ALIASES
from engine.offline_parts import EmbeddedModel
from engine.progress import NoProgress, Progress
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
    located = locate(DEFAULT_MODEL)
    assert isinstance(located, EmbeddedModel)
    assert located.name == "Qwen2.5-Coder-0.5B-Instruct"


def test_the_better_embedded_model_has_an_alias() -> None:
    assert locate("offline-1.5b").name == "Qwen2.5-Coder-1.5B-Instruct"


@pytest.mark.parametrize("alias", HUB_ALIASES)
def test_an_alias_names_a_base_model_of_the_hub(hub_requests: list[str], alias: str) -> None:
    located = locate(alias)
    owners = {"seed-coder-8b": "ByteDance-Seed", "mellum-4b": "JetBrains"}
    assert hub_requests == [HUB_ALIASES[alias]] == [located.name]
    owner, _, title = located.name.partition("/")
    assert owner == owners.get(alias, "Qwen")
    assert alias in title.lower()


def test_a_hub_id_is_taken_as_it_is(hub_requests: list[str]) -> None:
    assert locate("owner/some-model.v2").name == "owner/some-model.v2"
    assert hub_requests == ["owner/some-model.v2"]


def test_a_folder_here_does_not_take_the_place_of_a_model_of_the_hub(
    folder: Path, hub_requests: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that an editor is started in may ship one of that name."""
    monkeypatch.chdir(folder.parent.parent)
    name = f"{folder.parent.name}/{folder.name}"
    assert locate(name).name == name
    assert hub_requests == [name]


@pytest.mark.parametrize("begin", ["./", "../{here}/", "{parent}/"])
def test_a_folder_is_written_as_a_path(
    folder: Path, hub_requests: list[str], monkeypatch: pytest.MonkeyPatch, begin: str
) -> None:
    monkeypatch.chdir(folder.parent)
    located = locate(begin.format(here=folder.parent.name, parent=folder.parent) + folder.name)
    assert isinstance(located, FolderModel)
    assert (located.name, hub_requests) == ("tiny-qwen", [])
    assert located.is_plain
    assert on_disk(located, folder, NoProgress()) is located


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


def test_a_gguf_file_here_is_a_persons_own_word(
    tmp_path: Path, hub_requests: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    monkeypatch.chdir(tmp_path)
    assert isinstance(locate("tiny.gguf"), GgufModel)
    assert not hub_requests


def test_a_folder_of_another_architecture_says_which(tmp_path: Path) -> None:
    located = locate(str(save_model(tiny_model("mistral"), tmp_path)))
    assert isinstance(located, FolderModel)
    assert located.architecture == "MistralForCausalLM"
    assert not located.is_plain


def test_a_llama_is_ours(tmp_path: Path) -> None:
    located = locate(str(save_model(tiny_model("llama"), tmp_path)))
    assert isinstance(located, FolderModel)
    assert located.is_plain


def test_a_qwen2_with_a_sliding_window_is_not_ours(tmp_path: Path) -> None:
    model = tiny_model("qwen2", use_sliding_window=True, sliding_window=16, max_window_layers=1)
    located = locate(str(save_model(model, tmp_path)))
    assert isinstance(located, FolderModel)
    assert not located.is_plain


def test_a_gguf_file_is_opened(tmp_path: Path) -> None:
    located = locate(str(write_tiny_gguf(tmp_path / "tiny.gguf")))
    assert isinstance(located, GgufModel)
    assert located.name == "tiny"
    assert on_disk(located, tmp_path, NoProgress()) is located
    assert located.config.num_layers == LAYERS


def test_an_unknown_name_says_what_exists_and_what_to_write_also_where_there_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFoundError) as caught:
        locate("0.6b")
    message = str(caught.value)
    for part in ("'0.6b'", "offline-1.5b", "0.5b", "./0.6b", "owner/name"):
        assert part in message
    assert "--model" not in message


@pytest.mark.parametrize("name", ["", "a/b/c", "no such model", "../x", "http://x/y"])
def test_what_can_be_no_name_never_reaches_the_hub(name: str, hub_requests: list[str]) -> None:
    with pytest.raises(ModelNotFoundError):
        locate(name)
    assert not hub_requests


def test_a_missing_file_and_a_foreign_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"there is no file .*missing\.gguf"):
        locate(str(tmp_path / "missing.gguf"))
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(ModelNotFoundError, match=r"model\.bin is no \.gguf file"):
        locate(str(tmp_path / "model.bin"))


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"holds no config\.json"):
        locate(str(tmp_path))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"architectures": []}', "\x00\xff"])
def test_a_garbled_configuration_is_an_error_of_ours(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content, "latin-1")
    located = locate(str(tmp_path))
    assert isinstance(located, FolderModel)
    with pytest.raises(ModelCorruptError, match=r"config\.json"):
        _ = located.is_plain


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
