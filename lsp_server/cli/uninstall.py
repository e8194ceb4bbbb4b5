"""`foregram uninstall`: list and remove what foregram keeps on this machine, and nothing else."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from engine.errors import CacheError, InputError
from engine.installation import uninstall_command
from engine.offline_parts import OFFLINE_MODELS
from lsp_server.cli.messages import agreed, note, visible
from lsp_server.cli.models import disk_use, in_megabytes, installed_bytes, remove_packages
from lsp_server.host.daemon import stop_host
from lsp_server.settings import Settings

KEPT = 1  # exit status if the user says no
# Our files in folders that may hold others', too. Conversions older than v4 have a longer hash.
_CONVERTED = {"models": f"*-{'?' * 8}*-*-v[0-9]*"}
_PACKAGES = {"packages": "*"}
_IN_CACHE = {
    "gpu-checks": "*.json",
    "learned": "*.[jn][sp]*",  # json and npz
    "numba": "*/*.nb[ci]",
    "outcomes": "*.json",
    "repository": "*.sqlite*",
    "saved": "days.*",
}
_MOST_SHOWN = 3  # paths; beyond that, their folders are shown instead
_IN_RUNTIME = ("host.*", "lsp-token*", "token*", "why")  # lsp-token is of 0.1
_READY = ".foregram-ready"  # a file in each environment that `make` creates
_EXTENSION = "foregram.foregram"  # the folder in which VS Code keeps the extension's environment
_LEFT = """\
stays: your settings, in foregram.toml and in your editors
stays: models of the Hugging Face hub, which other programs share; `foregram models remove NAME`
"""


def uninstall(arguments: argparse.Namespace, settings: Settings) -> int:
    """List what is ours, and remove it if the user agrees. Raises ForegramError."""
    is_ours = _is_own_environment()
    models = [] if is_ours else [one for one in OFFLINE_MODELS.values() if installed_bytes(one)]
    for what, paths in _ours(settings).items():
        shown = paths if len(paths) <= _MOST_SHOWN else dict.fromkeys(one.parent for one in paths)
        places = ", ".join(map(str, shown))
        amount = in_megabytes(sum(map(disk_use, paths)))
        sys.stdout.write(visible(f"{amount:>10}  {what}: {places}\n"))
    for model in models:
        amount = in_megabytes(installed_bytes(model))
        sys.stdout.write(f"{amount:>10}  the packages of {model.name}\n")
    sys.stdout.write(_LEFT)
    if not is_ours:
        sys.stdout.write(
            visible(f"stays: {sys.prefix}; `{uninstall_command()}` removes it there\n")
        )
    if not arguments.yes and not sys.stdin.isatty():
        raise InputError("nothing was removed: `foregram uninstall --yes` does it without asking")
    if not arguments.yes and not agreed("the model in use ends. Remove all this?"):
        return KEPT
    asyncio.run(stop_host(msgspec.structs.replace(settings, host_url=None), note))
    for model in models:
        remove_packages(model)
    _remove([path for paths in _ours(settings).values() for path in paths], settings)
    sys.stdout.write("foregram is removed\n")
    return 0


def _remove(paths: Iterable[Path], settings: Settings) -> None:
    """Remove these paths, and our folders that are empty afterwards. Raises CacheError."""
    tops = {settings.cache_folder, settings.runtime_folder}
    emptied = set(tops)
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        except OSError as error:
            raise CacheError(f"{path} cannot be removed: {error.strerror}") from error
        emptied |= {up for up in path.parents if tops & {up, *up.parents}}
    for folder in sorted(emptied, reverse=True):  # inner folders first
        with suppress(OSError):  # others keep files there, too
            folder.rmdir()


def _ours(settings: Settings) -> dict[str, list[Path]]:
    # The environment, from which this runs, comes last.
    cache, runtime = settings.cache_folder, settings.runtime_folder
    found = {
        "state and logs": [path for one in _IN_RUNTIME for path in sorted(runtime.glob(one))],
        "packages of models": list(_kept(cache, _PACKAGES)),
        "converted models": list(_kept(cache, _CONVERTED)),
        "caches": list(_kept(cache, _IN_CACHE)),
        "the environment": [Path(sys.prefix)] if _is_own_environment() else [],
    }
    return {what: paths for what, paths in found.items() if paths}


def _kept(cache: Path, patterns: Mapping[str, str]) -> Iterator[Path]:
    """Yield our files in these folders of the cache; where a folder is a link, the link."""
    for name, pattern in patterns.items():
        folder = cache / name
        yield from [folder] if folder.is_symlink() else sorted(folder.glob(pattern))


def _is_own_environment() -> bool:
    prefix = Path(sys.prefix)
    is_ours = (prefix / _READY).exists() or prefix.parent.name == _EXTENSION
    return is_ours and sys.prefix != sys.base_prefix
