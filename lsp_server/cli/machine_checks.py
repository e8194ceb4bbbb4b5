"""The checks of `foregram doctor` on this machine, apart from the GPU; none loads torch."""

import platform
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

from engine.host.runtime import RuntimeFolder
from engine.installation import upgrade_command
from engine.model.device import has_torch
from engine.model.gpu.selfcheck.verdict import kept_verdicts
from lsp_server.model_choice import Check
from lsp_server.settings import Settings

MIN_FREE_BYTES = 2e9  # to convert the smallest model, with a margin


def check_torch(_settings: Settings) -> Check:
    """Tell which PyTorch is installed."""
    return Check(
        "torch", "ok", version("torch") if has_torch() else "not installed: a GPU needs it"
    )


def check_processor(_settings: Settings) -> Check:
    """Check which unit of the processor multiplies a model's 8-bit numbers. Loads numba."""
    try:
        from kernels.cpu_forward.processor import host_unit
    except ImportError as error:  # numba refuses a numpy that is too new
        return Check("processor", "failed", str(error), f"run: {upgrade_command()}")
    unit = host_unit()
    what = f"{platform.machine()}, {unit.name}"
    if unit.needs:
        return Check("processor", "ok", what)
    advice = (
        "a virtual machine may hide what its processor can do: give it all of it, or set host_url"
    )
    return Check("processor", "warning", f"{what}: completions take many times as long", advice)


def check_kernels(settings: Settings) -> Check | None:
    """Report the self-check of the latest load on a GPU; None if there was none."""
    if not (verdicts := kept_verdicts(settings.cache_folder)):
        return None
    latest = verdicts[-1]
    what = f"on {latest.key.get('device', 'a device')} {latest.sentence}"
    if latest.is_well:
        return Check("kernels", "ok", what)
    advice = "run `foregram bench gpu --check` and send us what it writes"
    return Check("kernels", "warning", what, advice)


def check_cache(settings: Settings) -> Check:
    """Check that converted models can be kept."""
    folder = settings.cache_folder
    try:
        with tempfile.TemporaryFile(dir=(at := _existing(folder))):
            free = shutil.disk_usage(at).free
    except OSError as error:
        advice = "make it writable, or set FOREGRAM_CACHE to another folder"
        return Check("cache", "failed", f"{folder} cannot be written: {error.strerror}", advice)
    what = f"{folder}, {free / 1e9:.1f} GB free"
    if free < MIN_FREE_BYTES:
        advice = "make room, or set FOREGRAM_CACHE to another folder"
        return Check("cache", "warning", f"{what}: too little to convert a model", advice)
    return Check("cache", "ok", what)


def check_repository(settings: Settings) -> Check:
    """Check that the workspace's files can be indexed."""
    if settings.repository_globs is None:
        return Check("repository", "ok", "is not asked for")
    try:
        from lsp_server.repository.folder_index import indexes_folder
        from lsp_server.repository.store import Store, StoreError
    except ImportError as error:
        what = f"no file can be indexed: {error}"
        return Check("repository", "failed", what, f"run: {upgrade_command()}")
    folder = indexes_folder(settings)
    try:
        with tempfile.TemporaryDirectory(dir=_existing(folder)) as tried:
            Store.build(Path(tried) / "tried.sqlite", folder).close()
    except (OSError, StoreError) as error:
        advice = "make room and the folder writable, or set FOREGRAM_CACHE to another one"
        return Check("repository", "failed", f"{folder} can hold no index: {error}", advice)
    return Check("repository", "ok", f"indexes are kept in {folder}")


def check_runtime_folder(settings: Settings) -> Check:
    """Check that only the user can open the folder of socket and token."""
    RuntimeFolder.open(settings.runtime_folder)
    return Check("runtime folder", "ok", f"{settings.runtime_folder}, open only to you")


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())
