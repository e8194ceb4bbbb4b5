"""`foregram uninstall`: what foregram keeps on this machine, listed and removed. Nothing else is."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.errors import CacheError, InputError
from engine.offline_parts import OFFLINE_MODELS
from lsp_server.cli.models import (
    disk_use,
    held_models,
    in_megabytes,
    installed_bytes,
    remove_packages,
)
from lsp_server.cli.report import note, visible
from lsp_server.host.daemon import stop_host
from lsp_server.host.probe import host_status
from lsp_server.settings import Settings

KEPT = 1  # exit status where the answer was no
# What we write into folders that a setting names, and that may hold things of others.
_IN_CACHE = ("learned", "outcomes", "repository", "gpu-checks", "numba")
_IN_RUNTIME = ("host.*", "token*", "lsp-token*", "why")
_READY = ".foregram-ready"  # in an environment that `make` or the VS Code extension made
_EXTENSION = "foregram.foregram"  # the folder in which VS Code keeps the extension's environment
_TOOLS = {"pipx_metadata.json": "pipx", "uv-receipt.toml": "uv tool"}


class _Part(NamedTuple):
    what: str
    folder: Path
    patterns: tuple[str, ...]

    @property
    def paths(self) -> list[Path]:
        return [path for one in self.patterns for path in sorted(self.folder.glob(one))]


def uninstall(arguments: argparse.Namespace, settings: Settings) -> int:
    """List what is ours, and remove it if the user agrees. Raises ForegramError."""
    local = msgspec.structs.replace(settings, host_url=None)
    parts = list(_parts(settings))
    models = [] if _own_environment() else list(filter(installed_bytes, OFFLINE_MODELS.values()))
    for part in parts:
        where = part.paths[0] if len(part.paths) == 1 else part.folder
        _tell(part.what, sum(map(disk_use, part.paths)), where)
    for model in models:
        _tell(f"the packages of {model.name}", installed_bytes(model), Path(sys.prefix))
    sys.stdout.writelines(visible(f"stays: {one}\n") for one in _left(settings))
    if not arguments.yes and not _agrees(local):
        return KEPT
    asyncio.run(stop_host(local, note))
    for model in models:
        remove_packages(model)
    for part in parts:
        _remove(part)
    for folder in (settings.cache_folder, settings.runtime_folder):
        with suppress(OSError):  # where others keep something, too
            folder.rmdir()
    sys.stdout.write("foregram is removed\n")
    return 0


def _parts(settings: Settings) -> Iterator[_Part]:
    """What is ours; the environment, from which this runs, comes last."""
    yield _Part("state and logs", settings.runtime_folder, _IN_RUNTIME)
    yield _Part("converted models", settings.cache_folder, ("models",))
    yield _Part("caches and what was learned", settings.cache_folder, _IN_CACHE)
    if environment := _own_environment():
        yield _Part("the environment", environment.parent, (escape(environment.name),))


def _own_environment() -> Path | None:
    """The virtual environment, if it is there for foregram alone."""
    prefix = Path(sys.prefix)
    is_ours = (prefix / _READY).exists() or prefix.parent.name == _EXTENSION
    return prefix if is_ours and sys.prefix != sys.base_prefix else None


def _left(settings: Settings) -> Iterator[str]:
    """What a person may want to remove as well, and how."""
    yield "your settings, in foregram.toml and in your editors"
    for model in held_models(settings):
        if model.files and model.name not in OFFLINE_MODELS:
            yield f"{model.title}, in a cache of other programs too; first `foregram models remove {model.name}`"
    if _own_environment() is None:
        tools = (tool for file, tool in _TOOLS.items() if Path(sys.prefix, file).exists())
        yield f"the packages in {sys.prefix}; `{next(tools, 'python -m pip')} uninstall foregram`"


def _tell(what: str, amount: int, where: Path) -> None:
    if amount:
        sys.stdout.write(visible(f"{in_megabytes(amount):>10}  {what}, in {where}\n"))


def _agrees(settings: Settings) -> bool:
    """Whether the person says yes. Raises InputError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise InputError("nothing was removed: `foregram uninstall --yes` does it without asking")
    status = asyncio.run(host_status(settings)).status
    users = f" {status.num_clients} editors use it." if status and status.num_clients else ""
    sys.stderr.write(f"foregram:{users} Remove all this? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _remove(part: _Part) -> None:
    """Remove what is there. Raises CacheError."""
    for path in part.paths:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        except OSError as error:
            raise CacheError(f"{path} cannot be removed: {error.strerror}") from error
