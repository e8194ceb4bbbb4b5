"""What numba keeps on disk: a damaged file costs a compilation, and never a start."""

import os
import shutil
import subprocess
import sys

import pytest

SOURCE = """
from kernels.compiled import njit
@njit("int64(int64)", cache=True)
def twice(number):
    return 2 * number
print(twice(21), sum(twice.stats.cache_hits.values()))
"""


def run(folder):
    command = [sys.executable, str(folder / "source.py")]
    environ = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "source.py").write_text(SOURCE)
    assert run(folder) == "42 0"
    assert run(folder) == "42 1"
    return folder


@pytest.fixture
def files(compiled, tmp_path):
    """A copy of what was compiled."""
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    return tmp_path


def cut(content):
    return content[: len(content) // 2]


def other(content):
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", cut, lambda content: bytes(len(content))],
    ids=["empty", "cut", "zeros"],
)
def test_a_damaged_file_is_made_anew(files, ending, damage):
    [path] = (files / "__pycache__").glob(f"*.{ending}")
    path.write_bytes(damage(path.read_bytes()))
    assert run(files) == "42 0"
    assert run(files) == "42 1"


def test_code_with_a_wrong_bit_does_not_run(files):
    [path] = (files / "__pycache__").glob("*.nbc")
    path.write_bytes(other(path.read_bytes()))
    assert run(files) == "42 0"
