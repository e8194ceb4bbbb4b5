"""What runs on a lent GPU machine needs no package but those that are there or carried along."""

import os
import subprocess
import sys
from functools import partial
from importlib.metadata import (
    PackageNotFoundError,
    entry_points,
    packages_distributions,
    requires,
)
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
THERE = ("torch", "triton", "numpy", "transformers")  # a GPU machine has these
CARRIED = (
    "filelock", "gguf", "httpx2", "msgspec", "numba", "packaging", "rich",
    "hypothesis", "pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist",
)  # fmt: skip


_FINDER = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda _, name, *rest: None if name in MISSING else find(name, *rest)
)
"""


def missing_modules():
    """The modules of all packages that are installed here, and neither there nor needed by those."""
    there, waiting = {"foregram"}, [*THERE, *CARRIED]
    while waiting:
        if (name := canonicalize_name(waiting.pop())) not in there:
            there.add(name)
            waiting += _required_by(name)
    owners = packages_distributions().items()
    return {module for module, names in owners if there.isdisjoint(map(canonicalize_name, names))}


def _required_by(name):
    try:
        found = map(Requirement, requires(name) or ())
    except PackageNotFoundError:  # of another system, or the device's own
        return []
    return [one.name for one in found if not one.marker or one.marker.evaluate({"extra": ""})]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Runs an interpreter without those modules, as are those that it starts."""
    folder, missing = tmp_path_factory.mktemp("machine"), missing_modules()
    assert {"lsprotocol", "prometheus_client", "pygls", "uvicorn"} <= missing
    (folder / "sitecustomize.py").write_text(f"MISSING = {missing}\n{_FINDER}")
    names = ("HOME", "FOREGRAM_CACHE", "FOREGRAM_RUNTIME", "TRITON_CACHE_DIR")
    environment = {name: str(folder / name.lower()) for name in names}
    environment |= {"PATH": os.defpath, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    return partial(_run, environment)


def _run(environment, *arguments):
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.timeout(120)  # numba compiles what nobody has compiled here before
@pytest.mark.parametrize(
    "arguments",
    [("-c", "import lsp_server.cli.bench_gpu"), ("-m", "lsp_server", "bench", "gpu", "--help")],
    ids=["module", "help"],
)
def test_the_benchmark_of_a_gpu_needs_no_editor_and_no_host(python, arguments):
    said = python(*arguments)
    assert said.returncode == 0, said.stderr


def test_the_doctor_says_in_a_sentence_what_is_missing_there(python):
    said = python("-m", "lsp_server", "doctor")
    assert said.returncode in {0, 1}
    assert "Traceback" not in said.stderr
    states = {line.split()[0] for line in said.stdout.splitlines()}
    assert "ok" in states
    assert states <= {"ok", "warning", "failed"}


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_all_tests_of_the_kernels_and_of_the_gpus_model_are_collected_there(python):
    folders = ("tests/kernels", "tests/engine/model/gpu")
    options = ("--collect-only", "-q", "-W", "default", "-p", "no:cacheprovider")
    plugins = entry_points(group="pytest11")
    missing = [one.name for one in plugins if one.module.split(".")[0] in missing_modules()]
    said = python("-m", "pytest", *folders, *options, *(f"-pno:{name}" for name in missing))
    assert said.returncode == 0, said.stdout
