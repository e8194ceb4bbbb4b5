"""What numba keeps on disk: a damaged file costs a compilation, and never a start."""

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


@pytest.fixture
def run(tmp_path):
    (tmp_path / "source.py").write_text(SOURCE)

    def run():
        command = [sys.executable, str(tmp_path / "source.py")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def cut(content):
    return content[: len(content) // 2]


def other(content):
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", cut, lambda content: bytes(len(content))],
    ids=["empty", "cut", "zeros"],
)
def test_a_damaged_file_is_made_anew(run, tmp_path, ending, damage):
    assert run() == "42 0"
    assert run() == "42 1"
    [path] = (tmp_path / "__pycache__").glob(f"*.{ending}")
    path.write_bytes(damage(path.read_bytes()))
    assert run() == "42 0"
    assert run() == "42 1"


def test_code_with_a_wrong_bit_does_not_run(run, tmp_path):
    run()
    [path] = (tmp_path / "__pycache__").glob("*.nbc")
    path.write_bytes(other(path.read_bytes()))
    assert run() == "42 0"
