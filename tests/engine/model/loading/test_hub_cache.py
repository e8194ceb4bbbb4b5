"""A download from the hub is a task whose bytes are counted as they come."""

import threading
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub import constants
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, enable_progress_bars

from engine.model.loading import hub_cache
from engine.model.loading.hub_cache import told
from engine.progress import NoProgress


class Counted(NoProgress):
    """Knows the total, and when so many bytes were counted."""

    def __init__(self, most: int) -> None:
        self.total, self.done, self.most = -1, 0, most
        self.is_there = threading.Event()

    def begin(self, task: str, total: int) -> None:
        self.total = total

    def advance(self, amount: int) -> None:
        self.done += amount
        if self.done >= self.most:
            self.is_there.set()


@pytest.fixture
def blobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the hub's client, which draws bars, keeps what it downloads of owner/model."""
    enable_progress_bars()  # transformers may have switched them off in another test
    monkeypatch.setattr(hub_cache, "_LOOK_S", 0.001)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--owner--model" / "blobs"
    folder.mkdir(parents=True)
    return folder


def says(monkeypatch: pytest.MonkeyPatch, **sizes: int) -> None:
    files = [
        SimpleNamespace(rfilename=name, size=size, lfs=SimpleNamespace(sha256=name))
        for name, size in sizes.items()
    ]
    info = SimpleNamespace(siblings=files)
    monkeypatch.setattr(huggingface_hub, "model_info", lambda *_, **__: info)


def test_bytes_are_counted_while_they_come(blobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, weights=5000, shard=7000, readme=100)
    (blobs / "shard").write_bytes(b"x" * 7000)
    counted = Counted(5000)
    with told("owner/model@v1", lambda name: name != "readme", counted):
        assert are_progress_bars_disabled()
        for part in ("one.incomplete", "two"):
            (blobs / part).write_bytes(b"x" * 2500)
        assert counted.is_there.wait(20)
    assert (counted.total, counted.done) == (5000, 5000)
    assert not are_progress_bars_disabled()


def test_a_hub_that_tells_no_sizes_is_downloaded_from(
    blobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(huggingface_hub, "model_info", fails)
    counted = Counted(1)
    with pytest.raises(ValueError, match="as it was"), told("owner/model", bool, counted):
        raise ValueError("as it was")
    assert counted.total == 0
    assert not are_progress_bars_disabled()
