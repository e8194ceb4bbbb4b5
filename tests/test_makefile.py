"""What a newcomer sees of `make setup`: each step says what it does before it takes its time."""

import shutil
import subprocess
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
        "foregram: step 1 of 2: torch==1",
        "-m pip --disable-pip-version-check install torch==1",
        "foregram: step 2 of 2: foregram with its tools and a model of 491 MB",
        "-m pip --disable-pip-version-check install --editable .[dev",
        "foregram: ready; 'make demo' shows a completion",
    ]
