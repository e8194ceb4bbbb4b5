"""A quantized model of the hub is one file of a repository, the one that is asked for."""

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest

from engine.errors import ModelCorruptError, ModelNotFoundError
from engine.model.loading.catalog import locate
from engine.model.loading.gguf_model import GgufModel
from engine.model.loading.hub import hub_gguf, is_meant
from engine.model_names import HUB_ALIASES
from engine.progress import Progress
from tests.support.said import Said
from tests.support.tiny_gguf import write_tiny_gguf
from tests.support.tiny_hub import cache_model

REPOSITORY = "ggml-org/Qwen2.5-Coder-7B-Q8_0-GGUF"
QWEN = [
    "README.md",
    "qwen2.5-coder-7b-instruct-q4_0.gguf",
    "qwen2.5-coder-7b-instruct-q4_k_m.gguf",
    "qwen2.5-coder-7b-instruct-q8_0-00001-of-00003.gguf",
    "qwen2.5-coder-7b-instruct-q8_0.gguf",
]


class FakeHub:
    """What a repository of the hub holds, and which files were downloaded."""

    def __init__(self, folder: Path) -> None:
        self.files: list[str] | None = list(QWEN)  # None: there is no network
        self.folder = folder
        self.downloaded: list[tuple[str, str, str | None]] = []
        self.blob = b"weights"

    def list_repo_files(self, repository: str, *, revision: str | None) -> list[str]:
        if self.files is None:
            raise ConnectionError("no network")
        return self.files

    def download(self, repository: str, revision: str | None, name: str, bars: Any) -> str:
        self.downloaded.append((repository, name, revision))
        blob = self.folder / hashlib.sha256(b"weights").hexdigest()
        blob.write_bytes(self.blob)
        (self.folder / name).symlink_to(blob)
        drawn = [bars(unit=unit) for unit in ("B", "B", "it")]  # two count the same bytes
        for count in (3, 4):
            for bar in drawn:
                bar.update(count)
        return str(self.folder)


@pytest.fixture
def fake_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeHub:
    """Nothing leaves the machine; the local cache is a folder of the test's."""
    hub = FakeHub(tmp_path)
    real = huggingface_hub.snapshot_download

    def snapshot(repository: str, *, revision: str | None, **options: Any) -> Any:
        if options.get("local_files_only"):
            cache = tmp_path / "hub"
            return real(repository, revision=revision, cache_dir=cache, local_files_only=True)
        if options.get("dry_run"):
            there, missing = ({"file_size": 7, "will_download": one} for one in (False, True))
            return [SimpleNamespace(**there), SimpleNamespace(**missing)]
        (name,) = options["allow_patterns"]
        return hub.download(repository, revision, name, options["tqdm_class"])

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    monkeypatch.setattr(huggingface_hub, "list_repo_files", hub.list_repo_files)
    return hub


def test_a_file_of_the_cache_is_taken_as_it_is(fake_hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    write_tiny_gguf(tmp_path / "files" / "qwen2.5-coder-7b-q8_0.gguf")
    snapshot = cache_model(tmp_path / "hub", REPOSITORY, tmp_path / "files")
    located = locate(REPOSITORY)
    assert isinstance(located, GgufModel)
    assert located.path == snapshot / "qwen2.5-coder-7b-q8_0.gguf"
    assert locate(f"{REPOSITORY}:q8_0").path == located.path
    assert not fake_hub.downloaded


def test_without_a_tag_what_is_cached_of_others_is_not_taken(fake_hub, tmp_path):
    """Whoever asked for 2 bits once has those of 4 bits all the same, unless there is no network."""
    (tmp_path / "files").mkdir()
    write_tiny_gguf(tmp_path / "files" / "x-Q2_K.gguf")
    snapshot = cache_model(tmp_path / "hub", "owner/x-GGUF", tmp_path / "files")
    assert hub_gguf("owner/x-GGUF:Q2_K", Progress()) == snapshot / "x-Q2_K.gguf"
    assert hub_gguf("owner/x-GGUF", Progress()).name == QWEN[2]
    fake_hub.downloaded.clear()
    fake_hub.files = ["x-Q2_K.gguf"]
    assert hub_gguf("owner/x-GGUF", Progress()) == snapshot / "x-Q2_K.gguf"
    assert not fake_hub.downloaded, "the only one is here"

    fake_hub.files = None
    assert hub_gguf("owner/x-GGUF", Progress()) == snapshot / "x-Q2_K.gguf"


def test_an_alias_may_mean_the_second_version_of_a_file(fake_hub):
    fake_hub.files = [f"sweep-next-edit-1.5b.{one}.gguf" for one in ("q8_0", "q8_0.v2")]
    path = hub_gguf(HUB_ALIASES["sweep-1.5b"], Progress())
    assert path.name == "sweep-next-edit-1.5b.q8_0.v2.gguf"


@pytest.mark.parametrize(
    ("file", "is_certain"),
    [("m.gguf", True), ("m-q4_k_m.gguf", True), ("x.IQ2_XS.gguf", False), ("x-bf16.gguf", False)],
)
def test_a_cached_file_is_meant_where_its_name_says_no_other_quantization(file, *, is_certain):
    assert is_meant("owner/x-GGUF", Path(file)) == is_certain
    assert is_meant("owner/x-GGUF:BF16", Path(file))


@pytest.mark.parametrize(
    ("tag", "file"),
    [("", QWEN[2]), (":Q8_0", QWEN[4]), (":q4_0@v2", QWEN[1])],
)
def test_a_tag_chooses_the_file(fake_hub: FakeHub, tag: str, file: str) -> None:
    """Without one it is that of four bits."""
    repository = "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF"
    assert hub_gguf(repository + tag, Progress()).name == file
    assert fake_hub.downloaded == [(repository, file, "v2" if tag.endswith("@v2") else None)]


def test_a_download_and_its_check_are_told_with_their_bytes(fake_hub: FakeHub) -> None:
    said = Said()
    hub_gguf("owner/x-GGUF:Q8_0", said)
    tasks = ["downloading owner/x-GGUF", "checking what was downloaded"]
    assert (said.tasks, said.totals) == (tasks, [7, 7])
    assert (said.advanced, said.num_ended) == (14, 2)


class Yielding(Said):
    """Lets another thread go on in the middle of a sum."""

    def advance(self, amount: int) -> None:
        before = self.advanced
        time.sleep(0)
        self.advanced = before + amount


def test_bytes_that_come_on_several_threads_are_each_told_once(fake_hub, monkeypatch):
    def download(repository: str, revision: str | None, name: str, bars: Any) -> str:
        (fake_hub.folder / name).write_text("")
        bar = bars(unit="B")
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(bar.update, [1] * 2000))
        return str(fake_hub.folder)

    monkeypatch.setattr(fake_hub, "download", download)
    said = Yielding()
    hub_gguf("owner/x-GGUF:Q8_0", said)
    assert said.advanced == 2000


def test_a_file_that_is_not_there_tells_which_are(fake_hub: FakeHub) -> None:
    with pytest.raises(ModelNotFoundError, match=r"owner/x:Q8_0\. There are .*q4_k_m\.gguf"):
        hub_gguf("owner/x:Q2_K", Progress())
    fake_hub.files = QWEN[:2] + QWEN[3:4] + ["b.gguf"]
    with pytest.raises(ModelNotFoundError, match="no single GGUF file"):
        hub_gguf("owner/x-GGUF", Progress())
    assert not fake_hub.downloaded


def test_a_download_is_checked_against_its_sum(fake_hub: FakeHub) -> None:
    fake_hub.blob = b"weighty"
    with pytest.raises(ModelCorruptError, match="other bytes"):
        hub_gguf("owner/x-GGUF", Progress())


def test_a_download_that_brings_no_such_file_is_none(fake_hub, monkeypatch):
    """The hub's client returns the folder that it has, whatever is in it."""
    monkeypatch.setattr(fake_hub, "download", lambda *_: str(fake_hub.folder))
    with pytest.raises(ModelNotFoundError, match=r"owner/x-GGUF:Q8_0 is not in the local"):
        hub_gguf("owner/x-GGUF:Q8_0", Progress())


def test_without_a_network_the_name_is_told(fake_hub):
    fake_hub.files = None
    with pytest.raises(ModelNotFoundError, match=r"owner/x-GGUF:Q8_0 is not in the local"):
        hub_gguf("owner/x-GGUF:Q8_0", Progress())
