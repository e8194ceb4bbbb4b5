"""`foregram models`: list the models on this machine and their sizes, install or remove one."""

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from huggingface_hub import scan_cache_dir
from huggingface_hub.errors import CacheNotFound

from engine.errors import InputError, ModelNotFoundError
from engine.fetch_failures import PACKAGE_INDEX, remedy
from engine.model_names import (
    EMBEDDED,
    HUB_ALIASES,
    gguf_tag,
    kind_of,
    serves,
    title_of,
    why_unknown,
)
from engine.offline_parts import (
    LOCKED,
    OFFLINE_MODELS,
    EmbeddedModel,
    find_part,
    package_folder,
)
from engine.progress import shown
from lsp_server.cli.messages import visible
from lsp_server.cli.terminal import ProgressBars
from lsp_server.host.client import host_status
from lsp_server.settings import Settings

_PIP = (sys.executable, "-I", "-m", "pip", "--disable-pip-version-check")
_AS_LOCKED = (
    *("--require-hashes", "--no-deps", "--only-binary", ":all:"),
    "--upgrade",  # one that lost its file is replaced, too
    "--no-cache-dir",  # it would hold everything once more
    "--no-user",  # which pip's configuration may say, and would not go with a folder
    "--target",
)
_TELLS = re.compile("error:|No module named pip", re.IGNORECASE)
_SAYS_NOTHING = re.compile(
    "No matching|Exception:"
)  # the reason is in earlier lines, or later ones


def manage_models(arguments: argparse.Namespace, settings: Settings) -> int:
    """List the models, install one, or remove one. Raises ForegramError."""
    name = arguments.name
    if arguments.action == "list":
        sys.stdout.writelines(map(visible, _listed(settings)))
    elif name is None:
        raise InputError(f"which model? `foregram models {arguments.action} NAME`")
    elif arguments.action == "install":
        install(name, settings.cache_folder)
        sys.stdout.write(f"{title_of(name)} is installed; the setting `model` takes it as {name}\n")
    else:
        freed = in_megabytes(_remove(name, settings.cache_folder))
        sys.stdout.write(f"removed {name}: {freed}; a host that runs it does so until it ends\n")
    return 0


def disk_use(path: Path) -> int:
    """Return the bytes on disk of a file, or of a folder and all that is in it; follow no links."""
    inside = (Path(at, name) for at, *names in os.walk(path) for name in (*names[0], *names[1]))
    total = 0
    for one in (path, *inside):
        with suppress(OSError):  # it is gone
            total += one.lstat().st_blocks * 512  # st_blocks counts 512 bytes on any disk
    return total


def in_megabytes(amount: int) -> str:
    """Return a number of bytes as in `491 MB`."""
    return f"{amount / 1e6:,.0f} MB"


def installed_bytes(model: EmbeddedModel) -> int:
    """Return the bytes that a model's installed packages take."""
    parts = (find_part(model, number) for number in range(1, model.num_parts + 1))
    return sum(disk_use(part) for part in parts if part)


def remove_packages(model: EmbeddedModel) -> None:
    """Have pip remove an embedded model from this environment. Raises ModelNotFoundError."""
    _pip("uninstall", "--yes", *model.packages)


def _listed(settings: Settings) -> Iterator[str]:
    status = asyncio.run(host_status(msgspec.structs.replace(settings, host_url=None))).status
    folders = _folders(settings.cache_folder)
    for title in sorted({*EMBEDDED.values(), *folders}):
        name = _NAMES.get(title, title)
        model = OFFLINE_MODELS.get(name)
        packages = installed_bytes(model) if model else 0
        runs = status and status.model and serves(name, status.requested_model, status.model)
        amounts = {
            "on disk": packages + sum(map(disk_use, folders.get(title, []))),
            "of memory": int(status.memory_mb * 1e6) if status and runs else 0,
            "to fetch": model.num_bytes if model and not packages else 0,
        }
        told = [f"{in_megabytes(amount)} {what}" for what, amount in amounts.items() if amount]
        yield f"{name} ({title}): {', '.join(told)}\n"
    yield f"`foregram models install` also takes {', '.join(HUB_ALIASES)}, or owner/name\n"


def _folders(cache_folder: Path, wanted: str = "") -> dict[str, list[Path]]:
    """Return, by a model's title, the folders of its conversions and in the hub's cache."""
    found: dict[str, list[Path]] = {}
    for manifest in sorted(cache_folder.glob("models/*/manifest.json")):
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):  # damaged ones
            title = str(json.loads(manifest.read_bytes())["name"])
            found.setdefault(title, []).append(manifest.parent)
    with suppress(CacheNotFound, ValueError):  # no folder, or a file in its place
        for one in scan_cache_dir().repos:  # it holds other programs' models, too
            if one.repo_type == "model" and one.repo_id in (wanted, *found, *_NAMES):
                found.setdefault(one.repo_id, []).append(one.repo_path)
    return found


def install(name: str, cache_folder: Path) -> None:
    """Download a model, or an embedded one's packages. Raises ForegramError."""
    kind = kind_of(name)
    if kind in ("path", "auto"):
        raise InputError(f"{name} needs no installing: set model to it")
    if kind == "unknown":
        raise InputError(why_unknown(name))
    if kind != "embedded":
        from engine.model.loading.catalog import locate  # noqa: PLC0415 - it loads the readers of models

        locate(name, ProgressBars())
        return
    model, progress = OFFLINE_MODELS[name], ProgressBars()
    progress.tell(f"{model.name}: {in_megabytes(model.num_bytes)} in {model.num_parts} packages")
    for number, locked in enumerate(model.locked, start=1):
        if find_part(model, number) is None:
            with shown(progress, f"fetching package {number} of {model.num_parts}", 0):
                _install_package(locked, package_folder(cache_folder, model))


def _install_package(locked: str, folder: Path) -> None:
    """Install a package alone: what is there stays if a later one fails, and needs no room twice."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.write(locked)
        wanted.flush()
        _pip("install", *_AS_LOCKED, str(folder), "-r", wanted.name)


def _pip(*words: str) -> None:
    """Run pip on this environment. Raises ModelNotFoundError if it fails."""
    ran = subprocess.run((*_PIP, *words), capture_output=True, text=True, check=False)
    if ran.returncode:
        raise ModelNotFoundError(f"pip {words[0]} failed: {_why(ran.stdout + ran.stderr)}")


def _why(output: str) -> str:
    """Return the reason that pip gave, and what helps."""
    last = [line.strip() for line in output.splitlines() if _TELLS.search(line)][-1:]
    reason = last[0] if last else "it gave no reason"
    if told := remedy(PACKAGE_INDEX, output if _SAYS_NOTHING.search(reason) else reason):
        return told
    if "No matching" in reason:
        package = reason.rpartition(" ")[2]
        return f"it finds no {package}; set {PACKAGE_INDEX.mirror} to PyPI's index or a mirror"
    return f"{reason}; {LOCKED} lists the packages"


def _remove(name: str, cache_folder: Path) -> int:
    """Remove all of a model and return its bytes. Raises ModelNotFoundError."""
    title = title_of(name) if kind_of(name) == "path" else _TITLES.get(name, gguf_tag(name)[0])
    freed = 0
    if model := OFFLINE_MODELS.get(name):
        freed = installed_bytes(model)
        shutil.rmtree(package_folder(cache_folder, model), ignore_errors=True)
        if installed_bytes(model):
            remove_packages(model)
    for folder in _folders(cache_folder, title).get(title, []):
        freed += disk_use(folder)
        shutil.rmtree(folder)
    if not freed:
        raise ModelNotFoundError(f"nothing of {name} is here; `foregram models` lists what is")
    return freed


_TITLES = {name: gguf_tag(title)[0] for name, title in (EMBEDDED | HUB_ALIASES).items()}
_NAMES = {title: name for name, title in _TITLES.items()}
