"""What `foregram doctor` checks on this machine, apart from the GPU and the host.

One function for each check; none loads torch.
"""

import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engine.host.runtime import RuntimeFolder
from engine.model.gpu.selfcheck.verdict import kept_verdicts
from lsp_server.model_choice import Check
from lsp_server.setting_layers import SettingsProblem
from lsp_server.settings import Settings

_INSTALL = f"run: {sys.executable} -m pip install --upgrade foregram"
MIN_FREE_BYTES = 2e9  # what the smallest model takes to convert, and some more
_ADVICE = "run `foregram bench gpu --check` and send us what it writes"


def check_python() -> Check:
    """Which Python runs, and where; pip installs nothing into one that is too old."""
    return Check("python", "ok", f"{platform.python_version()}, {sys.executable}")


def check_torch() -> Check:
    """Whether torch is installed."""
    try:
        return Check("torch", "ok", version("torch"))
    except PackageNotFoundError:
        return Check("torch", "failed", "not installed, so no model can run here", _INSTALL)


def check_processor() -> Check:
    """What of the processor multiplies a model's 8-bit numbers; it loads numba."""
    try:
        from kernels.cpu_forward.processor import host_unit
    except ImportError as error:  # numba refuses a numpy that is too new
        return Check("processor", "failed", str(error), _INSTALL)
    unit = host_unit()
    what = f"{platform.machine()}, {unit.name}"
    if unit.needs:
        return Check("processor", "ok", what)
    advice = (
        "a virtual machine may hide what its processor can do: give it all of it, or set host_url"
    )
    return Check("processor", "warning", f"{what}: completions take many times as long", advice)


def check_cache(folder: Path) -> Check:
    """Whether converted models can be kept."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            free = shutil.disk_usage(existing).free
    except OSError as error:
        what = f"{folder} cannot be written: {error.strerror}"
        return Check(
            "cache", "failed", what, "make it writable, or set FOREGRAM_CACHE to another folder"
        )
    what = f"{folder}, {free / 1e9:.1f} GB free"
    if free < MIN_FREE_BYTES:
        advice = "make room, or set FOREGRAM_CACHE to another folder"
        return Check("cache", "warning", f"{what}: too little to convert a model", advice)
    return Check("cache", "ok", what)


def check_repository(settings: Settings) -> Check:
    """Whether the workspace's files can be indexed."""
    if settings.repository_globs is None:
        return Check("repository", "ok", "is not asked for")
    try:
        from lsp_server.repository.folder_index import indexes_folder
        from lsp_server.repository.store import Store, StoreError
    except ImportError as error:
        advice = "install foregram with all that it needs: pip install foregram"
        return Check("repository", "failed", f"no file can be indexed: {error}", advice)
    folder = indexes_folder(settings)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryDirectory(dir=existing) as tried:
            Store.build(Path(tried) / "tried.sqlite", folder).close()
    except (OSError, StoreError) as error:
        advice = "make room and the folder writable, or set FOREGRAM_CACHE to another one"
        return Check("repository", "failed", f"{folder} can hold no index: {error}", advice)
    return Check("repository", "ok", f"indexes are kept in {folder}")


def check_settings(problems: Iterable[SettingsProblem]) -> list[Check]:
    """Each setting that is wrong, by its name."""
    advice = "correct or remove it; until then only lsp and serve run"
    found = [Check("settings", "failed", str(problem), advice) for problem in problems]
    return found or [Check("settings", "ok", "all are known and valid")]


def check_runtime_folder(path: Path) -> Check:
    """Whether only the user can open the folder of socket and token."""
    RuntimeFolder.open(path)
    return Check("runtime folder", "ok", f"{path}, open only to you")


def check_kernels(cache_folder: Path) -> list[Check]:
    """One check where a model was loaded on a GPU before, of the latest such load."""
    if not (verdicts := kept_verdicts(cache_folder)):
        return []
    latest = verdicts[-1]
    what = f"on {latest.key.get('device', 'a device')} {latest.sentence}"
    if not latest.is_well:
        return [Check("kernels", "warning", what, _ADVICE)]
    return [Check("kernels", "ok", what)]
