"""How much memory this process takes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.memory import available_bytes, peak_resident_bytes, resident_bytes

only_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells")


@only_linux
def test_memory_is_what_is_resident_now_and_the_peak_is_the_most_so_far():
    # In a process of its own: a system under load takes pages back from one that holds gigabytes.
    script = """
from engine.memory import peak_resident_bytes, resident_bytes
readings = [resident_bytes()]
ballast = b"x" * 200_000_000
readings.append(resident_bytes())
del ballast
print(*readings, resident_bytes(), peak_resident_bytes())
"""
    told = subprocess.check_output([sys.executable, "-c", script])
    before, held, after, peak = map(int, told.split())
    assert held - before > 150_000_000
    assert held - after > 150_000_000
    assert peak - before > 150_000_000


@only_linux
def test_what_is_free_between_what_stays_is_given_back():
    script = """
from engine.memory import resident_bytes, return_free_memory
texts = ["x" * 8000 for _ in range(25_000)]
held = resident_bytes()
del texts[::2], texts[::2]
free = resident_bytes()
print(return_free_memory(), held, free, resident_bytes())
"""
    told = subprocess.check_output([sys.executable, "-c", script], text=True)
    is_able, *sizes = told.split()
    held, kept, returned = map(int, sizes)
    if is_able == "False":
        pytest.skip("this C library gives nothing back")
    assert held - kept < 50_000_000
    assert held - returned > 100_000_000


@only_linux
def test_many_threads_share_a_few_places_of_memory():
    script = """
import threading
from pathlib import Path
from engine.memory import use_few_arenas
use_few_arenas()
def size_mb():
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096 / 1e6
before, held, is_over = size_mb(), [], threading.Event()
def hold():
    held.append("x" * 8000)
    is_over.wait()
threads = [threading.Thread(target=hold) for _ in range(16)]
for one in threads:
    one.start()
print(size_mb() - before)
is_over.set()
"""
    grown = float(subprocess.check_output([sys.executable, "-c", script]))
    assert grown < 16 * (64 + 4)  # by default a thread has 64 MB of address space, and its stack


@only_linux
def test_a_process_does_not_count_the_memory_of_the_one_that_started_it():
    ballast = b"x" * 200_000_000
    script = "from engine.memory import peak_resident_bytes; print(peak_resident_bytes())"
    told = subprocess.check_output([sys.executable, "-c", script])
    assert 1_000_000 < int(told) < len(ballast)


def test_where_the_system_does_not_tell_memory_is_the_peak(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.memory._STATUS", tmp_path / "none")
    assert resident_bytes() == peak_resident_bytes() > 10_000_000


@only_linux
def test_sparse_zeros_take_what_is_written_to_also_after_others_were_freed():
    script = """
import numpy as np
from engine.memory import resident_bytes, sparse_zeros
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


def test_no_more_memory_is_available_than_the_machine_has():
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < available_bytes() < total
