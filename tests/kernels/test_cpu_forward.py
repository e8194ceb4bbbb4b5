"""The compiled pass: its instructions, the formula, and a row's bits whatever rides beside it."""

import ctypes
import os
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest
import torch
from llvmlite import ir
from numba import njit

from kernels.cpu_forward import (
    BLOCK,
    ForwardInput,
    Linear,
    Matrix,
    Model,
    Runner,
    host_unit,
    pack,
    processor,
    slot_width,
)
from kernels.cpu_forward.forward import forward
from kernels.cpu_forward.packing import empty
from kernels.cpu_forward.processor import host_features, tell_needs
from kernels.cpu_forward.rows import exponential
from kernels.cpu_forward.tiles import (
    GROUP,
    PANEL,
    emit_product,
    product_rows,
    product_width,
    tile_function,
)
from kernels.cpu_forward.vector_unit import VECTOR_UNITS, VectorUnit, best_unit
from tests.support import cpu_reference as reference

AVX2 = "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+popcnt,+ssse3,+sse4.1,+sse4.2"
RUNS_HERE = [unit for unit in VECTOR_UNITS if set(unit.needs) <= host_features()]
HIDDEN, HEADS, KV_HEADS, SIZE, INTERMEDIATE, VOCAB, LAYERS = 136, 6, 2, 24, 200, 150, 2


def machine_for(triple: str, features: str) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple).create_target_machine(features=features, opt=2)


def assembly(emit, unit: VectorUnit, rows: int, num_values: int, triple: str, features: str) -> str:
    """What the tile is on another kind of processor."""
    module = ir.Module()
    module.triple = triple
    tile_function(module, emit, unit, rows, num_values).linkage = "external"
    return str(machine_for(triple, features).emit_assembly(llvm.parse_assembly(str(module))))


@pytest.fixture(params=RUNS_HERE, ids=lambda unit: unit.name)
def product_tile(request):
    """The product of one vector unit, compiled for this machine: the unit and a function."""
    unit = request.param
    module = ir.Module()
    function = tile_function(module, emit_product, unit, product_rows(unit), 8)
    function.linkage = "external"
    tell_needs(function, unit)
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(features=features, opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), machine)
    engine.finalize_object()
    address = engine.get_function_address(function.name)
    yield unit, ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 8)(address)
    engine.close()


def test_a_tile_sums_the_integers_exactly(product_tile):
    """At the largest numbers that are allowed, where 16 bits would overflow first."""
    unit, multiply = product_tile
    rng = np.random.default_rng(1)
    rows, width, groups = product_rows(unit), product_width(unit), 3
    codes = rng.choice([-unit.levels, unit.levels - 1, unit.levels], (rows, groups * GROUP))
    weights = rng.choice([-127, 126, 127], (PANEL, groups * GROUP))
    weights[:2] = 127 * np.sign(codes[:2])  # all products positive
    codes = codes.astype(np.int8)
    matrix = pack(Linear(weights.astype(np.int8), np.ones(PANEL, np.float32)))
    stored = (matrix.codes ^ np.uint8(host_unit().offset)) ^ np.uint8(unit.offset)
    starts = -unit.offset * codes.reshape(rows, groups, GROUP).sum(2, dtype=np.int32)
    scales = np.exp2(rng.integers(0, 2, (rows, groups))).astype(np.float32)  # nothing is rounded
    sums = np.zeros((rows, PANEL), np.float32)
    arrays = (codes, stored, starts.astype(np.int32), scales, sums)
    multiply(*(array.ctypes.data for array in arrays), groups, stored.ctypes.data, 128)
    exact = np.einsum(
        "rgk,ogk->rog", *(x.reshape(len(x), groups, GROUP).astype(int) for x in (codes, weights))
    )
    expected = np.einsum("rog,rg->ro", exact, scales.astype(np.float64))
    assert np.array_equal(sums[:, :width], expected[:, :width])


@pytest.mark.parametrize(
    ("name", "triple", "features", "instruction"),
    [
        ("AVX-512 VNNI", "x86_64-unknown-linux-gnu", "+avx512f,+avx512vl,+avx512vnni", "vpdpbusd"),
        ("AVX-VNNI", "x86_64-unknown-linux-gnu", "+avx2,+fma,+avxvnni", "vpdpbusd"),
        ("AVX2", "x86_64-unknown-linux-gnu", "+avx2,+fma", "vpmaddubsw"),
        ("NEON dot product", "aarch64-unknown-linux-gnu", "+neon,+dotprod", "sdot"),
        ("NEON dot product", "arm64-apple-macosx", "+neon,+dotprod", "sdot"),
        ("NEON without dot product", "aarch64-unknown-linux-gnu", "+neon", "sadalp"),
    ],
)
def test_each_processor_gets_its_dot_product(name, triple, features, instruction):
    (unit,) = (unit for unit in VECTOR_UNITS if unit.name == name)
    text = assembly(emit_product, unit, product_rows(unit), 8, triple, features)
    assert instruction in text


def test_a_dot_product_that_numba_does_not_know_of_is_compiled_all_the_same(monkeypatch):
    """A virtual machine may hide the processor's name, from which LLVM would infer it."""
    monkeypatch.setattr(processor, "_flags", lambda: "+neon,-sve")
    (unit,) = (unit for unit in VECTOR_UNITS if unit.name == "NEON dot product")
    module = ir.Module()
    module.triple = "aarch64-unknown-linux-gnu"
    function = tile_function(module, emit_product, unit, product_rows(unit), 8)
    function.linkage = "external"
    tell_needs(function, unit)
    assert '"target-features"="+neon,-sve,+dotprod"' in str(module)
    machine = machine_for(module.triple, "+neon,-sve")
    assert "sdot" in machine.emit_assembly(llvm.parse_assembly(str(module)))


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("Features\t: fp asimd aes atomics asimddp ssbs\n", "NEON dot product"),
        ("Features\t: fp asimd evtstrm crc32 cpuid\n", "NEON without dot product"),
    ],
)
def test_the_dot_product_of_an_arm_machine_is_what_its_kernel_says(
    cpuinfo, name, monkeypatch, tmp_path
):
    path = tmp_path / "cpuinfo"
    path.write_text(cpuinfo)
    monkeypatch.setattr(processor, "_CPUINFO", path)
    monkeypatch.setattr(processor, "_flags", lambda: "+neon")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    monkeypatch.setattr("sys.platform", "linux")
    assert best_unit(processor.host_features.__wrapped__()).name == name


def test_the_exponential_is_near_and_zero_for_what_is_hidden():
    compiled = njit(exponential.py_func)
    for x in np.linspace(-86, 0, 500, dtype=np.float32):
        assert compiled(x) == pytest.approx(np.exp(np.float64(x)), rel=3e-7)
    for hidden in (-np.inf, -1e4, -100.0, -87.0):
        assert compiled(np.float32(hidden)) == 0.0
    assert compiled(np.float32(0.0)) == 1.0
    assert compiled(np.float32(1e4)) == compiled(np.float32(88.0)) < np.inf


def random_model(seed: int = 0) -> Model:
    rng = np.random.default_rng(seed)

    def linear(outputs: int, inputs: int, *, paired: bool = False) -> Matrix:
        layers = [
            Linear(
                rng.integers(-127, 128, (outputs, inputs), dtype=np.int8),
                (rng.random(outputs, np.float32) + 0.5) / 1500,
                rng.normal(size=outputs).astype(np.float32) / 8,
            )
            for _ in range(LAYERS)
        ]
        packed = [pack(layer, paired=paired) for layer in layers]
        return Matrix(*map(np.concatenate, zip(*packed, strict=True)))

    return Model(
        num_layers=LAYERS,
        num_heads=HEADS,
        num_kv_heads=KV_HEADS,
        head_dim=SIZE,
        epsilon=1e-6,
        qkv=linear((HEADS + 2 * KV_HEADS) * SIZE, HIDDEN),
        o=linear(HIDDEN, HEADS * SIZE),
        gate_up=linear(2 * INTERMEDIATE, HIDDEN, paired=True),
        down=linear(HIDDEN, INTERMEDIATE),
        head=linear(VOCAB, HIDDEN),
    )


def random_step(rng: np.random.Generator, rows: int, length: int, slots: int = 96) -> ForwardInput:
    """A random tree of rows behind random keys and values."""
    sees = np.eye(rows, dtype=bool)
    for row in range(1, rows):
        sees[row] |= sees[rng.integers(row)]
    angles = np.outer(length + sees.sum(1) - 1, 10.0 ** -np.linspace(0, 3, SIZE // 2))
    cache = (LAYERS, KV_HEADS, slots, slot_width(SIZE))
    keys, values = (empty(cache, np.float32) for _ in range(2))
    for held in (keys, values):
        held[..., :length, :SIZE] = rng.normal(size=(LAYERS, KV_HEADS, length, SIZE))
    return ForwardInput(
        num_rows=rows,
        length=length,
        sees=sees,
        cosines=np.cos(angles).astype(np.float32),
        sines=np.sin(angles).astype(np.float32),
        keys=keys,
        values=values,
        logits=np.zeros((rows, VOCAB), np.float32),
        peaks=np.zeros((rows, -(-VOCAB // BLOCK)), np.float32),
    )


@pytest.mark.timeout(300)  # compiles first
@pytest.mark.parametrize(("rows", "length"), [(1, 0), (1, 41), (7, 20), (40, 13)])
def test_equals_the_formula(rows, length):
    rng = np.random.default_rng(rows)
    model, step = random_model(), random_step(rng, rows, length)
    twin = step._replace(keys=step.keys.copy(), values=step.values.copy())
    embeddings = rng.normal(size=(rows, HIDDEN)).astype(np.float32)
    Runner(model, HIDDEN, max_rows=64, num_threads=2).run(embeddings, step)
    expected = reference.forward(model, twin, torch.from_numpy(embeddings)).numpy()[:, :VOCAB]
    # A number that lies between two codes may be rounded to either.
    np.testing.assert_allclose(step.logits, expected, atol=0.02 * np.abs(expected).max())
    assert np.corrcoef(step.logits.ravel(), expected.ravel())[0, 1] > 0.9999
    blocks = np.split(step.logits, range(BLOCK, step.logits.shape[1], BLOCK), axis=1)
    assert np.array_equal(step.peaks, np.stack([one.max(axis=1) for one in blocks], axis=1))
    for held, expected_held in ((step.keys, twin.keys), (step.values, twin.values)):
        np.testing.assert_allclose(held[0], expected_held[0], atol=1e-4)
        assert np.corrcoef(held[1].ravel(), expected_held[1].ravel())[0, 1] > 0.9999


def test_what_is_compiled_ahead_is_what_runs():
    model, step = random_model(), random_step(np.random.default_rng(8), 3, 5)
    runner = Runner(model, HIDDEN, max_rows=64, num_threads=2)
    runner.compile()
    known = list(forward.signatures)
    runner.run(np.ones((3, HIDDEN), np.float32), step)
    assert forward.signatures == known


@pytest.mark.timeout(300)  # compiles first
@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_threads_and_neighbours_change_no_bit(num_threads):
    """Each row of a path alone, as plain decoding runs it, has other tiles, lanes and places."""
    rng = np.random.default_rng(5)
    model, step = random_model(), random_step(rng, 23, 37)
    alone = step._replace(keys=step.keys.copy(), values=step.values.copy())
    embeddings = rng.normal(size=(23, HIDDEN)).astype(np.float32)
    Runner(model, HIDDEN, max_rows=64, num_threads=2).run(embeddings, step)
    runner = Runner(model, HIDDEN, max_rows=64, num_threads=num_threads)
    for depth, row in enumerate(np.flatnonzero(step.sees[22])):
        one = alone._replace(
            num_rows=1,
            length=37 + depth,
            sees=np.ones((1, 1), bool),
            cosines=step.cosines[row : row + 1],
            sines=step.sines[row : row + 1],
            logits=np.zeros((1, VOCAB), np.float32),
        )
        runner.run(embeddings[row : row + 1], one)
        assert np.array_equal(one.logits[0], step.logits[row])


def test_what_stands_behind_the_rows_and_in_working_memory_is_not_read():
    rng = np.random.default_rng(7)
    model, step = random_model(), random_step(rng, 5, 11, slots=16)
    embeddings = rng.normal(size=(5, HIDDEN)).astype(np.float32)
    runner = Runner(model, HIDDEN, max_rows=64, num_threads=1)
    runner.run(embeddings, step)
    poisoned = step._replace(logits=np.zeros_like(step.logits))
    for held in (poisoned.keys, poisoned.values):
        held[:, :, 11:] = np.nan
    for held in (*runner._scratch[0], runner._buffers.heads, runner._buffers.queries):
        held[:] = np.nan
    runner.run(embeddings, poisoned)
    assert np.array_equal(poisoned.logits, step.logits)


def test_a_step_without_a_head_writes_its_keys_alone():
    rng = np.random.default_rng(6)
    model, step = random_model(), random_step(rng, 4, 5)
    reading = step._replace(logits=np.zeros((0, VOCAB), np.float32), keys=step.keys.copy())
    embeddings = rng.normal(size=(4, HIDDEN)).astype(np.float32)
    runner = Runner(model, HIDDEN, max_rows=64, num_threads=2)
    runner.run(embeddings, step)
    runner.run(embeddings, reading)
    assert np.array_equal(reading.keys, step.keys)


@pytest.mark.slow  # compiles for another processor
@pytest.mark.timeout(600)
@pytest.mark.skipif("avx2" not in host_features(), reason="this processor has no AVX2")
def test_a_processor_with_avx2_alone_gives_rows_their_own_bits():
    here = f"{__file__}::test_threads_and_neighbours_change_no_bit"
    limited = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": AVX2}
    program = f"""
import sys, pytest
from kernels.cpu_forward import host_unit
assert host_unit().name == "AVX2", host_unit()
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", {here!r}]))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, check=False, env=os.environ | limited, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_a_scale_for_fewer_outputs_is_refused_before_anything_is_written():
    with pytest.raises(ValueError, match=r"of \[60\] outputs beside 64"):
        pack(Linear(np.ones((64, 64), np.int8), np.ones(60, np.float32)))


@pytest.mark.parametrize(
    "change",
    [
        {"num_heads": HEADS + 2},
        {"head_dim": 3 * SIZE},
        {"num_layers": LAYERS + 1},
        {"num_kv_heads": 4 * HEADS},
    ],
)
def test_matrices_that_do_not_fit_the_sizes_of_a_model_are_refused(change):
    with pytest.raises(ValueError, match="outputs of"):
        Runner(random_model()._replace(**change), HIDDEN, max_rows=8, num_threads=1)
    with pytest.raises(ValueError, match="outputs of"):
        Runner(random_model(), HIDDEN + GROUP, max_rows=8, num_threads=1)
