"""What every test gets: fixed seeds, poisoned memory, and a reason where it cannot run."""

import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from engine.errors import ModelNotFoundError
from engine.offline_parts import OFFLINE_MODELS, find_parts
from lsp_server.settings import load_settings

os.environ.setdefault("GOMP_SPINCOUNT", "20000")  # as the foregram command does
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers share the cores
# On a GPU deterministic work asks cuBLAS for it, and torch may warn where it is not set.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
# What NVIDIA's driver leaves: on Linux, and in Windows' Linux.
_HAS_GPU = any(map(os.path.exists, ("/dev/nvidiactl", "/usr/lib/wsl/lib/libcuda.so.1")))
if not _HAS_GPU:
    # Without a GPU kernels are interpreted. Triton must know before anybody imports it, and
    # transformers does.
    os.environ["TRITON_INTERPRET"] = "1"
_EXAMPLES = 25  # of a property test, at most
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A run in the background is deaf to Ctrl-C, and so is all that it starts; tests press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    """Say how kernels are run, as nothing else tells a GPU that was not found."""
    return (
        f"kernels: {'compiled for the GPU' if _HAS_GPU else 'interpreted, there is no NVIDIA GPU'}"
    )


@pytest.fixture(autouse=True)
def _fixed_seeds() -> None:
    """Every test draws the same random numbers in every run."""
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def _poisoned_memory() -> Iterator[None]:
    """`torch.empty` holds NaN, so that reading what nobody wrote fails loudly."""
    if "torch" not in sys.modules:
        yield
        return
    torch = sys.modules["torch"]
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(mode=False)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Compute on one thread: on tiny tensors more of them only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def few_splits() -> Iterator[None]:
    """Attention has few splits, some with several tiles; the interpreter is slow for each program."""
    from kernels import batch_attention
    from kernels.batch_attention import triton_kernel

    with pytest.MonkeyPatch.context() as patch:
        for module in (batch_attention, triton_kernel):
            patch.setattr(module, "num_splits", lambda kv_heads: 4)
        patch.setattr(triton_kernel, "COMBINED_ROWS", 16)
        yield


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the user's converted models: what tests teach it stays out of the user's own."""
    models = load_settings().required().cache_folder / "models"
    models.mkdir(parents=True, exist_ok=True)
    folder = tmp_path_factory.mktemp("cache")
    (folder / "models").symlink_to(models)
    return folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files of the most patient tests, then the larger ones: two end together.

    Without a profile, as at a developer's, property tests try fewer examples.
    """
    if config.getoption("--hypothesis-profile", None) is None:
        _try_fewer_examples(items)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    items.sort(key=lambda item: _weight(files[item.path]), reverse=True)


def _try_fewer_examples(items: list[pytest.Item]) -> None:
    for item in items:
        test = getattr(item, "obj", None)
        test = getattr(test, "__func__", test)
        asked = getattr(test, "_hypothesis_internal_use_settings", None)
        if isinstance(asked, settings):
            fewer = settings(asked, max_examples=min(asked.max_examples, _EXAMPLES))
            vars(test)["_hypothesis_internal_use_settings"] = fewer


def _weight(tests: list[pytest.Item]) -> tuple[float, int]:
    """How long the longest of a file's tests may take, and how many there are."""
    marks = [test.get_closest_marker("timeout") for test in tests]
    return max((float(mark.args[0]) for mark in marks if mark), default=0), len(tests)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine cannot run, with the reason."""
    if item.get_closest_marker("model"):
        try:
            find_parts(OFFLINE_MODELS["offline"])
        except ModelNotFoundError as error:
            pytest.skip(str(error))
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no CUDA device")
