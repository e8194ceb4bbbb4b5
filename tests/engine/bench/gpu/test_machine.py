"""How much a benchmark takes of a GPU, by the memory that is free on it, and how it is timed."""

from unittest.mock import Mock

import pytest
import torch

from engine.bench.gpu.machine import Machine, cuda_ms, host_ms

GB = 10**9


@pytest.mark.parametrize("free_gb", [80, 8, 1])
def test_two_copies_leave_most_of_the_memory_free(monkeypatch, free_gb):
    monkeypatch.setattr("engine.bench.gpu.machine.free_bytes", lambda _: free_gb * GB)
    fitting = Machine(torch.device("cuda"), torch.bfloat16, host_ms).fitting(GB)
    assert 0 < fitting <= GB
    assert fitting % 4000 == 0
    assert 2 * 4 * fitting <= 0.4 * free_gb * GB


def test_a_cuda_timer_takes_the_median_of_its_repeats_behind_the_warm_ups(monkeypatch):
    order = Mock()
    order.event.elapsed_time.side_effect = [1.0, 50.0, 2.0, 3.0, 4.0]
    monkeypatch.setattr("torch.cuda.Event", lambda enable_timing: order.event)
    assert cuda_ms(order.work, repeats=5) == 3.0
    calls = [name for name, *_ in order.method_calls[:14]]
    assert calls == [*["work"] * 3, "event.record", *["work", "event.record"] * 5]
    assert order.method_calls[14][0] == "event.synchronize"
