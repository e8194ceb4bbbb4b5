"""What `foregram doctor` looks at on this machine, the GPU and the host aside.

One function for each check, and none loads torch.
"""

import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import msgspec

from engine.errors import ModelNotFoundError
from engine.host.runtime import RuntimeFolder
from engine.model.model_names import DEFAULT_MODEL, kind_of, path_of
from engine.model.offline_parts import OFFLINE_MODELS, find_parts
from lsp_server.setting_layers import SettingsProblem

MIN_FREE_BYTES = 2e9  # what the smallest model takes to convert, and some more


class Check(msgspec.Struct, frozen=True):
    """What was found, and what to do about it where it is not as it should be."""

    name: str
    state: Literal["ok", "warning", "failed"]
    what: str
    advice: str = ""


def failure(name: str, error: Exception, advice: str = "") -> Check:
    """A failed check. Unless there is `advice`, it is what an error says after its semicolon."""
    found, _, remedy = str(error).rpartition("; ")
    if advice or not found:
        return Check(name, "failed", str(error), advice or "correct that and try again")
    return Check(name, "failed", found, remedy)


def check_python() -> Check:
    """Which Python runs us, and where; pip installs us into none that is too old."""
    return Check("python", "ok", f"{platform.python_version()}, {sys.executable}")


def check_torch() -> Check:
    """Whether torch is installed."""
    try:
        return Check("torch", "ok", version("torch"))
    except PackageNotFoundError:
        advice = f"run: {sys.executable} -m pip install --upgrade foregram"
        return Check("torch", "failed", "is not installed, so no model can run here", advice)


def check_model(model: str | None) -> Check:
    """Whether the model that the settings name is there, as far as that shows without loading it."""
    name = model or DEFAULT_MODEL
    kind = kind_of(name)
    if kind == "embedded":
        return _embedded(name)
    if kind == "path":
        path = path_of(name)
        return _folder(path) if path.is_dir() else _file(path)
    if kind == "unknown":
        advice = f"set model to a folder (./{name}), a .gguf file, an alias or a hub id"
        return Check("model", "failed", f"no model is called {name!r}", advice)
    what = f"{name} is looked up on the Hugging Face hub when the host loads it"
    return Check("model", "warning", what, "`foregram doctor --start` loads it, now")


def check_cache(folder: Path) -> Check:
    """Whether converted models can be kept."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            free = shutil.disk_usage(existing).free
    except OSError as error:
        what = f"{folder} cannot be written: {error.strerror}"
        return Check("cache", "failed", what, "make it writable, or set FOREGRAM_CACHE to another")
    what = f"{folder}, {free / 1e9:.1f} GB free"
    if free < MIN_FREE_BYTES:
        advice = "make room, or set FOREGRAM_CACHE to another folder"
        return Check("cache", "warning", f"{what}: too little to convert a model", advice)
    return Check("cache", "ok", what)


def check_settings(problems: Iterable[SettingsProblem]) -> list[Check]:
    """Each setting that is wrong, by its name."""
    advice = "correct or remove it; commands other than lsp and serve refuse to run until then"
    found = [Check("settings", "failed", str(problem), advice) for problem in problems]
    return found or [Check("settings", "ok", "all are known and right")]


def check_runtime_folder(path: Path) -> Check:
    """Whether the folder of socket and token is the user's own."""
    RuntimeFolder.open(path)
    return Check("runtime folder", "ok", f"{path}, open to you alone")


def _embedded(name: str) -> Check:
    model = OFFLINE_MODELS[name]
    try:
        parts = find_parts(model)
    except ModelNotFoundError as error:
        return failure("model", error)
    return Check("model", "ok", f"{name}: {model.name}, all {len(parts)} parts are installed")


def _folder(path: Path) -> Check:
    if (path / "config.json").is_file():
        return Check("model", "ok", f"the folder {path}")
    advice = "a model's folder has config.json, tokenizer.json and .safetensors files"
    return Check("model", "failed", f"the folder {path} holds no config.json", advice)


def _file(path: Path) -> Check:
    if path.is_file() and path.suffix == ".gguf":
        return Check("model", "ok", f"{path}, {path.stat().st_size / 1e9:.1f} GB")
    what = f"{path} is no .gguf file" if path.exists() else f"there is no {path}"
    return Check("model", "failed", what, "set model to a folder, a .gguf file, or an alias")
