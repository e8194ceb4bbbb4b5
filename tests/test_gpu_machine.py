"""What runs on a lent GPU machine needs no package but those that are there or carried along."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.support.few_packages import with_dependencies

ROOT = Path(__file__).parents[1]
THERE = ("torch", "triton", "numpy", "transformers")  # a GPU machine has these
CARRIED = (
    "filelock", "gguf", "httpx2", "msgspec", "numba", "packaging", "rich",
    "hypothesis", "pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist",
)  # fmt: skip


@pytest.fixture
def python(tmp_path):
    """Runs an interpreter that finds these packages only, as do those that it starts."""
    names = with_dependencies((*THERE, *CARRIED))
    (tmp_path / "sitecustomize.py").write_text(
        f"from tests.support.few_packages import find_only\n\nfind_only({names})\n"
    )
    folders = ("HOME", "FOREGRAM_CACHE", "FOREGRAM_RUNTIME", "TRITON_CACHE_DIR")
    environment = {name: str(tmp_path / name.lower()) for name in folders}
    environment |= {"PATH": os.defpath, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    return partial(_run, environment)


def _run(environment, *arguments):
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("module", ["lsprotocol", "prometheus_client", "pygls", "uvicorn"])
def test_such_a_machine_has_no_editor_and_no_host(python, module):
    assert f"No module named '{module}'" in python("-c", f"import {module}").stderr


@pytest.mark.timeout(120)  # numba compiles what nobody has compiled here before
@pytest.mark.parametrize(
    "arguments",
    [("-c", "import lsp_server.cli.bench"), ("-m", "lsp_server", "bench", "gpu", "--help")],
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


@pytest.mark.timeout(120)
def test_all_tests_of_the_kernels_and_of_the_gpus_model_are_collected_there(python):
    folders = ("tests/kernels", "tests/engine/model/gpu")
    options = ("--collect-only", "-q", "-W", "default", "-p", "no:cacheprovider")
    said = python("-m", "pytest", *folders, *options)
    assert said.returncode == 0, said.stdout
