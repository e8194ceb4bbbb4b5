"""How much a benchmark takes of a GPU, by the memory that is free on it, and how it is timed."""

from unittest.mock import Mock

import pytest
import torch

from engine.bench.gpu.machine import Machine, cuda_ms, measure_bandwidth

GB = 10**9


@pytest.mark.parametrize("free_gb", [80, 8, 1])
def test_what_is_read_leaves_most_of_the_memory_free(monkeypatch, free_gb):
    drawn, rand = [], torch.rand

    def noted(*shape, device):
        drawn.append(shape)
        return rand(1, 4000)

    monkeypatch.setattr("engine.bench.gpu.machine.free_bytes", lambda _: free_gb * GB)
    monkeypatch.setattr(torch, "rand", noted)
    measure_bandwidth(Machine(torch.device("cuda"), torch.bfloat16, lambda _: 1.0), GB)
    (rows, width), _ = drawn
    assert 0 < rows * width <= GB
    assert 4 * rows * width <= 0.4 * free_gb * GB


def test_a_cuda_timer_takes_the_median_of_its_repeats_behind_the_warm_ups(monkeypatch):
    order = Mock()
    order.event.elapsed_time.side_effect = [1.0, 50.0, 2.0, 3.0, 4.0]
    monkeypatch.setattr("torch.cuda.Event", lambda enable_timing: order.event)
    assert cuda_ms(order.work, repeats=5) == 3.0
    calls = [name for name, *_ in order.method_calls[:14]]
    assert calls == [*["work"] * 3, "event.record", *["work", "event.record"] * 5]
    assert order.method_calls[14][0] == "event.synchronize"
