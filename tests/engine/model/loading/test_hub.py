"""A model of the hub comes from the local cache when it is whole there."""

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants

from engine.errors import ModelCorruptError, ModelNotFoundError
from engine.model.loading import hub
from engine.progress import Progress
from tests.support.tiny_hub import cache_model

DOWNLOAD = huggingface_hub.snapshot_download


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever the cache, a folder of the test's, lacks fails as without network."""

    def snapshot(repository: str, *, local_files_only: bool = False, **options: Any):
        if not local_files_only:
            raise ConnectionError("no network")
        cache = tmp_path / "hub"
        return DOWNLOAD(repository, cache_dir=cache, local_files_only=True, **options)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)


def _model(folder: Path, **files: str) -> Path:
    folder.mkdir()
    names = {"config": "config.json", "tokenizer": "tokenizer.json", "weights": "model.safetensors"}
    for name, content in files.items():
        (folder / names.get(name, name)).write_text(content)
    return folder


def test_a_whole_snapshot_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = _model(tmp_path / "files", config="{}", tokenizer="{}", weights="")
    snapshot = cache_model(tmp_path / "hub", "owner/model", folder)
    assert hub.hub_folder("owner/model", Progress()) == snapshot


def test_a_revision_in_the_name_is_the_one_that_is_taken(tmp_path: Path) -> None:
    folder = _model(tmp_path / "files", config="{}", tokenizer="{}", weights="")
    snapshot = cache_model(tmp_path / "hub", "owner/model", folder)
    assert hub.hub_folder(f"owner/model@{snapshot.name}", Progress()) == snapshot
    with pytest.raises(ModelNotFoundError, match=r"owner/model@v2 is not in the local"):
        hub.hub_folder("owner/model@v2", Progress())


def test_a_download_is_checked_once_though_its_first_check_was_killed(tmp_path: Path) -> None:
    folder = _model(tmp_path / "files", config="{}", tokenizer="{}", weights="weighty")
    snapshot = cache_model(tmp_path / "hub", "owner/model", folder)
    stored = snapshot / hashlib.sha256(b"weights").hexdigest()
    (snapshot / "model.safetensors").rename(stored)
    (snapshot / "model.safetensors").symlink_to(stored)
    with pytest.raises(ModelCorruptError, match=r"model\.safetensors .* other bytes"):
        hub.hub_folder("owner/model", Progress())
    assert not stored.exists()
    stored.write_text("weights")
    for _ in range(2):
        assert hub.hub_folder("owner/model", Progress()) == snapshot
        stored.write_text("not read again")


@pytest.mark.parametrize("missing", ["config", "tokenizer", "weights"])
def test_an_interrupted_download_is_not_taken(tmp_path: Path, missing: str) -> None:
    files = dict.fromkeys({"config", "tokenizer", "weights"} - {missing}, "{}")
    cache_model(tmp_path / "hub", "owner/model", _model(tmp_path / "files", **files))
    with pytest.raises(ModelNotFoundError, match=r"owner/model .* could not be downloaded"):
        hub.hub_folder("owner/model", Progress())


def test_all_files_of_an_index_have_to_be_there(tmp_path: Path) -> None:
    folder = _model(tmp_path / "files", config="{}", tokenizer="{}", weights="")
    index = '{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}'
    (folder / "model.safetensors.index.json").write_text(index)
    (folder / "one.safetensors").write_text("")
    cache_model(tmp_path / "hub", "owner/model", folder)
    with pytest.raises(ModelNotFoundError):
        hub.hub_folder("owner/model", Progress())


@pytest.fixture
def offline_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's own client, told that there is no network."""
    client = partial(DOWNLOAD, cache_dir=tmp_path / "hub")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", client)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.mark.usefixtures("offline_client")
def test_a_hub_that_tells_no_sizes_leaves_what_is_cached_under_other_names(tmp_path: Path) -> None:
    folder = _model(tmp_path / "files", config="{}", tokenizer="{}")
    (folder / "gptq_model-4bit-128g.safetensors").write_text("")
    snapshot = cache_model(tmp_path / "hub", "owner/model", folder)
    assert hub.hub_folder("owner/model", Progress()) == snapshot
    with pytest.raises(ModelNotFoundError, match=r"cannot be downloaded: HF_HUB_OFF") as caught:
        hub.hub_folder("owner/other", Progress())
    assert "or use the embedded model `offline`" in str(caught.value)


def test_a_snapshot_without_a_file_that_its_repository_has_is_the_last_resort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _model(tmp_path / "files", config="{}", tokenizer="{}", weights="")
    snapshot = cache_model(tmp_path / "hub", "owner/model", folder)
    listed = ["config.json", "tokenizer.json", "model.safetensors", "generation_config.json"]
    files = {name: {"size": 2, "blob_id": "0" * 40} for name in listed}
    trees = snapshot.parents[1] / "trees"
    trees.mkdir()
    tree = json.dumps({"format_version": 1, "files": files})
    (trees / f"{snapshot.name}.json").write_text(tree)
    assert hub.hub_folder("owner/model", Progress()) == snapshot
    whole = _model(tmp_path / "whole", config="{}", tokenizer="{}", weights="")

    def snapshot_download(*args: Any, local_files_only: bool = False, **options: Any) -> Any:
        if local_files_only:
            return local(*args, local_files_only=True, **options)
        return [] if options.get("dry_run") else str(whole)

    local = huggingface_hub.snapshot_download
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert hub.hub_folder("owner/model", Progress()) == whole


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("owner/model", r"owner/model is not in the local.*`offline`"),
        ("owner/a--b", "is no name of the hub"),
    ],
)
def test_a_model_that_is_nowhere_says_what_else_there_is(name: str, words: str) -> None:
    with pytest.raises(ModelNotFoundError, match=words):
        hub.hub_folder(name, Progress())
