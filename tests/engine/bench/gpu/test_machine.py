"""How much a benchmark takes of a GPU, by the memory that is free on it."""

import pytest
import torch

from engine.bench.gpu.machine import Machine, host_ms

GB = 10**9


@pytest.mark.parametrize("free_gb", [80, 8, 1])
def test_two_copies_leave_most_of_the_memory_free(monkeypatch, free_gb):
    monkeypatch.setattr("engine.bench.gpu.machine.free_bytes", lambda _: free_gb * GB)
    fitting = Machine(torch.device("cuda"), torch.bfloat16, host_ms).fitting(GB)
    assert 0 < fitting <= GB
    assert fitting % 4000 == 0
    assert 2 * 4 * fitting <= 0.4 * free_gb * GB


def test_the_cpu_stands_for_a_gpu_that_has_room_for_all():
    assert Machine(torch.device("cpu"), torch.bfloat16, host_ms).fitting(GB) == GB
