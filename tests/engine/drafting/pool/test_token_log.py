"""What is not written to takes no memory."""

import subprocess
import sys
from pathlib import Path

import pytest

only_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells")


@only_linux
def test_sparse_zeros_take_what_is_written_to_also_after_others_were_freed():
    script = """
import numpy as np
from engine.drafting.pool.token_log import sparse_zeros
from engine.memory import resident_bytes
for _ in range(2):  # glibc then takes arrays of this size from memory that was used
    used = [np.ones(10**6, np.int32) for _ in range(20)]
del used
before = resident_bytes()
held = [sparse_zeros(10**6, np.int32) for _ in range(20)]
assert not any(one[::1000].any() for one in held[:2]), "they are zeros"
held[0][:1000] = 1
after = resident_bytes()
del held
print(before, after, resident_bytes())
"""
    told = subprocess.check_output([sys.executable, "-c", script])
    before, held, after = map(int, told.split())
    assert held - before < 20_000_000
    assert after - before < 2_000_000
