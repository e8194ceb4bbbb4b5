"""Where a step's time goes, over a tiny model on the CPU."""

from dataclasses import replace

from engine.bench.gpu.operation_times import measure_operations
from engine.bench.gpu.profile import measure_gaps


def test_gaps_are_timed_with_both_ways_to_launch(machine):
    off, on = measure_gaps(machine)
    assert (off.is_programmatic, on.is_programmatic) == (False, True)
    assert min(off.us, on.us) > 0


def test_every_operation_of_a_step_is_timed_as_often_as_it_is_launched(shape, lab):
    found = measure_operations(lab, replace(shape, quantization="fp8"), [(1, 64), (8, 64)])
    assert found.notes == ()
    launches = {(one.operation, one.weight): one.launches for one in found.cases}
    vocab = shape.config.vocab_size
    assert launches == {
        ("kv_commit", ""): 1,
        ("embed_rows", ""): 1,
        ("project_qkv", "256 x 128"): 2,
        ("batch_attention", ""): 2,
        ("skinny_matmul", "128 x 128"): 2,
        ("gate_up", "512 x 128"): 2,
        ("skinny_matmul", "128 x 256"): 2,
        ("lm_head", f"{vocab} x 128"): 1,
        ("acceptance_walk", ""): 1,
    }
    assert len(found.cases) == 2 * len(launches)
    bytes_of = {(one.operation, one.weight): one.bytes for one in found.cases}
    assert bytes_of["gate_up", "512 x 128"] == 512 * 128 + 4 * 512
    assert bytes_of["batch_attention", ""] == 2 * 64 * 64 * 4
    assert min(one.us for one in found.cases) > 0
