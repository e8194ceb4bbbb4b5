"""A model is converted once, whole or not at all, and checked when it is loaded."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from filelock import FileLock

from engine.errors import CacheError, ConfigurationError, ModelCorruptError
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.gguf_model import GgufModel
from engine.model.loading.store import obtain
from engine.offline_parts import OFFLINE_MODELS
from engine.progress import Progress
from tests.support.packed import packed_tensors
from tests.support.said import Said
from tests.support.tiny_gguf import write_tiny_gguf


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> GgufModel:
    return GgufModel(write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf"))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def _obtain(
    cache: Path, model: GgufModel | FolderModel, quantization: str = "int8"
) -> ConvertedModel:
    return obtain(cache, model, quantization, Progress())


def _entries(cache: Path) -> list[str]:
    """What a user sees in the cache folder: no lock files."""
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


@pytest.mark.parametrize("quantization", ["int8", "float32", "bfloat16"])
def test_a_converted_model_holds_what_packing_makes(cache, gguf, quantization):
    model = _obtain(cache, gguf, quantization)
    source = GgufModel(gguf.path)
    packed = packed_tensors(quantization, source.config, source.read)
    loaded = model.tensors()
    assert loaded.keys() == packed.keys()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in packed.items())
    assert all(tensor.data_ptr() % 64 == 0 for tensor in loaded.values())
    assert (model.name, model.quantization, model.config) == ("tiny", quantization, source.config)
    assert model.fingerprint == gguf.fingerprint
    assert model.tokenizer_document() == source.tokenizer_document()


def test_the_second_time_converts_nothing(cache: Path, gguf: GgufModel) -> None:
    first, second = Said(), Said()
    before = obtain(cache, gguf, "int8", first)
    after = obtain(cache, gguf, "int8", second)
    assert before == after
    assert first.tasks == ["converting tiny to int8, once on this machine"]
    assert first.advanced == pytest.approx(first.totals[0], rel=0.01)
    assert second.tasks == []


def test_a_conversion_removes_what_an_older_version_wrote(cache: Path, gguf: GgufModel) -> None:
    other = _obtain(cache, gguf, "float32").folder
    folder = _obtain(cache, gguf, "int8").folder
    old = folder.with_name(f"{folder.name.rpartition('-')[0]}-v0")
    folder.rename(old)
    folder.with_name("tiny-0123456789abcdef-int8-v0").mkdir()  # of a file at another place
    assert _obtain(cache, gguf, "int8").folder == folder
    assert _entries(cache) == sorted([folder.name, other.name])


def test_of_a_file_that_changed_four_times_the_newest_conversion_stays(cache, gguf, tmp_path):
    path = Path(shutil.copy(gguf.path, tmp_path / "tiny.gguf"))
    beside = _obtain(cache, gguf, "int8").folder  # of another file with the same name
    other = _obtain(cache, GgufModel(path), "float32").folder
    folders = []
    for time_ns in range(1, 5):
        os.utime(path, ns=(time_ns, time_ns))
        folders.append(_obtain(cache, GgufModel(path), "int8").folder)
    assert _entries(cache) == sorted(one.name for one in (beside, other, folders[-1]))
    locks = {one.name for one in cache.iterdir() if one.suffix == ".lock"}
    assert locks == {f".{one.name}.lock" for one in (beside, other, folders[-1])}


def test_an_unknown_form_is_refused_before_anything_is_written(cache, gguf):
    with pytest.raises(ConfigurationError, match="dtype 'int2' is none of bfloat16, float32, int8"):
        _obtain(cache, gguf, "int2")
    assert not cache.exists()


@pytest.mark.parametrize("file", ["weights.bin", "tokenizer.json"])
def test_a_truncated_file_of_the_cache_is_found_and_converted_again(cache, gguf, file):
    folder = _obtain(cache, gguf).folder
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[:-10])
    with pytest.raises(ModelCorruptError, match="truncated or foreign"):
        ConvertedModel.load(folder)
    assert _obtain(cache, gguf).folder == folder
    assert (folder / file).read_bytes() == content


def test_a_changed_byte_is_found(cache: Path, gguf: GgufModel) -> None:
    path = _obtain(cache, gguf).folder / "weights.bin"
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelCorruptError, match="is damaged"):
        ConvertedModel.load(path.parent)


def test_a_copied_cache_is_still_good(cache: Path, gguf: GgufModel, tmp_path: Path) -> None:
    folder = _obtain(cache, gguf).folder
    copied = Path(shutil.copytree(folder, tmp_path / "copied", copy_function=shutil.copyfile))
    assert ConvertedModel.load(copied).config == ConvertedModel.load(folder).config


@pytest.mark.parametrize("content", ["", "{}", '{"files": {}}', '{"files": {"x": {}}}'])
def test_a_garbled_manifest_is_an_error_of_ours(cache: Path, gguf: GgufModel, content: str) -> None:
    folder = _obtain(cache, gguf).folder
    (folder / "manifest.json").write_text(content)
    with pytest.raises(ModelCorruptError):
        ConvertedModel.load(folder)


@pytest.mark.parametrize("wrong", [None, 5, "many", []])
@pytest.mark.parametrize("key", ["name", "config", "places"])
def test_so_is_a_manifest_with_another_value(cache, gguf, key, wrong):
    manifest = _obtain(cache, gguf).folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {key: wrong}))
    with pytest.raises(ModelCorruptError):
        ConvertedModel.load(manifest.parent)


def _have_free(monkeypatch: pytest.MonkeyPatch, num_bytes: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=num_bytes))


def test_no_space_is_said_before_anything_is_written(cache, gguf, monkeypatch):
    _have_free(monkeypatch, 1_000_000)
    with pytest.raises(CacheError, match=r"no space to convert tiny: .* 0\.1 GB .* 0\.0 GB are fr"):
        obtain(cache, gguf, "int8", Progress())
    assert _entries(cache) == []


def test_the_joined_file_of_an_embedded_model_counts(cache, monkeypatch):
    _have_free(monkeypatch, 400_000_000)
    with pytest.raises(CacheError, match=r"it needs 0\.5 GB in .* where 0\.4 GB are free"):
        obtain(cache, OFFLINE_MODELS["offline"], "int8", Progress())


def test_a_disk_that_fills_up_on_the_way_leaves_nothing(cache, gguf, monkeypatch):
    told = Said()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("engine.model.loading.conversion._write", full)
    with pytest.raises(CacheError, match="No space left on device"):
        obtain(cache, gguf, "int8", told)
    assert _entries(cache) == []
    assert told.num_ended == len(told.tasks)
    monkeypatch.undo()
    assert _obtain(cache, gguf).tensors()


def test_a_cache_that_is_a_file_is_refused(tmp_path: Path, gguf: GgufModel) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(CacheError, match=r"cannot be converted in .*cache"):
        _obtain(tmp_path / "cache", gguf)


@pytest.fixture
def _no_root() -> Iterator[None]:
    """Become nobody for a while if we are root, to whom nothing is forbidden."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield
    if root:
        os.seteuid(0)


@pytest.mark.usefixtures("_no_root")
def test_a_folder_that_may_not_be_written_is_refused() -> None:
    with pytest.raises(CacheError, match=r"cannot be converted in /foregram-cache: .*Permission"):
        obtain(Path("/foregram-cache"), OFFLINE_MODELS["offline"], "int8", Progress())


def test_what_a_killed_process_left_is_cleared_away(cache: Path, gguf: GgufModel) -> None:
    folder = _obtain(cache, gguf).folder
    shutil.rmtree(folder)
    left = folder.with_name(f".{folder.name}.partial")
    (left / "scratch").mkdir(parents=True)
    (left / "scratch" / "joined.gguf").write_bytes(b"half")
    assert _obtain(cache, gguf).folder == folder
    assert _entries(cache) == [folder.name]


def test_a_damaged_source_leaves_no_model(cache: Path, gguf: GgufModel, tmp_path: Path) -> None:
    content = gguf.path.read_bytes()
    (tmp_path / "cut.gguf").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelCorruptError, match="truncated"):
        _obtain(cache, GgufModel(tmp_path / "cut.gguf"))
    assert _entries(cache) == []


_CONVERT = """
import sys
from pathlib import Path
from engine.model.loading.gguf_model import GgufModel
from engine.model.loading.store import obtain
from engine.progress import Progress

class Told(Progress):
    def begin(self, task, total):
        print(task, flush=True)

model = obtain(Path(sys.argv[1]), GgufModel(Path(sys.argv[2])), "int8", Told())
print(len(model.tensors()), flush=True)
"""


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_two_processes_convert_once_between_them(cache, gguf, processes):
    """Both wait for a lock held here, then one converts and the other finds the model there."""
    folder = _obtain(cache, gguf).folder
    lock = folder.with_name(f".{folder.name}.lock")
    num_tensors = len(ConvertedModel.load(folder).tensors())
    with FileLock(lock):
        shutil.rmtree(folder)
        for _ in range(2):
            command = [sys.executable, "-c", _CONVERT, str(cache), str(gguf.path)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            processes.append(process)
        waiting = [_line(process) for process in processes]
    outputs = [process.communicate(timeout=50)[0].split("\n") for process in processes]
    assert waiting == ["waiting for another process that converts the model"] * 2
    assert sum("converting tiny to int8, once on this machine" in output for output in outputs) == 1
    assert all(str(num_tensors) in output for output in outputs)
    assert _entries(cache) == [folder.name]


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_weights_packed_for_another_processor_are_packed_anew(cache, gguf, monkeypatch):
    model = _obtain(cache, gguf)
    told = Said()
    monkeypatch.setattr("engine.model.loading.converted_model.layout", lambda: "of another one")
    other = obtain(cache, gguf, "int8", told)
    assert (model.folder, "of another one") == (other.folder, other.layout)
    assert told.tasks == ["converting tiny to int8, once on this machine"]
    assert "packed for another processor" in told.sentences[0]


def test_processes_share_the_weights_of_the_cpu(cache: Path, gguf: GgufModel) -> None:
    """They are mapped for reading: none can change what others read."""
    with pytest.raises(ValueError, match="read-only"):
        _obtain(cache, gguf).arrays()["embedding"][0] = 1


def test_single_rows_are_read_from_the_disk(cache: Path, gguf: GgufModel) -> None:
    model = _obtain(cache, gguf)
    numbers = np.array([7, 0, 7])
    assert np.array_equal(model.rows("embedding")[numbers], model.arrays()["embedding"][numbers])


def test_a_file_that_became_shorter_gives_no_row(cache: Path, gguf: GgufModel) -> None:
    model = _obtain(cache, gguf)
    rows = model.rows("embedding")
    os.truncate(model.folder / "weights.bin", 100)
    with pytest.raises(ModelCorruptError, match="became shorter"):
        rows[np.array([7])]
