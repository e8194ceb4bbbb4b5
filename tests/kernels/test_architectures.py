"""Kernels compile: those of a step in `.ci/run`, all and by the oldest Triton in `make test-kernels`."""

import os
import subprocess
import sys
from itertools import product

import pytest

from kernels.device_limits import LIMITS, limits_for
from kernels.product import tiles
from tests.support.block_weights import BLOCK_FORMS
from tests.support.blueprint import empty_weight
from tests.support.matrix_order import disorder
from tests.support.products import QUANTIZATIONS

pytestmark = pytest.mark.timeout(300)  # of compiling
SHAPES = [(100, 4096), (896, 896), (4608, 3584), (3584, 18944), (37888, 3584), (152064, 5120)]


def compile_all(options, triton_folder):
    environ = {"PYTHONPATH": str(triton_folder or ""), "PATH": os.defpath}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.compile_all", "--workers", "1", *options.split()],
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failures" in done.stdout


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("architecture", "forms", "rows", "operations"),
    [
        ("80", "float", "64,128", "skinny_matmul"),
        ("86", "fp8,q4_k", 64, "skinny_matmul,batch_attention"),
        ("90", "int4", 16, "skinny_matmul,batch_attention"),
        ("90", "fp8", 16, "skinny_matmul,lm_head"),
        ("90", "fp8,int4", 32, "skinny_matmul"),
        ("90", "float,int4", 128, "skinny_matmul"),
        ("100-early", "float", 64, "skinny_matmul"),
        ("100", "int4", 16, "skinny_matmul"),
        ("100", "q6_k_min", 64, "skinny_matmul"),
        ("120-early", "fp8", 64, "skinny_matmul,batch_attention"),
    ],
)
def test_kernels_fit_spill_and_fuse_nothing_and_add_in_order(
    architecture, forms, rows, operations, triton_folder
):
    options = f"--architectures {architecture} --forms {forms} --rows {rows}"
    compile_all(f"--models 7b {options} --operations {operations}", triton_folder)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param("16", marks=pytest.mark.slow),
        pytest.param("32,64,128", marks=pytest.mark.compiler),
    ],
)
def test_all_kernels_of_a_model_compile(rows, triton_folder):
    options = f"--models 0.5b --forms float --architectures 90-early --rows {rows}"
    compile_all(options, triton_folder)


@pytest.mark.parametrize("form", [*QUANTIZATIONS, *BLOCK_FORMS])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("least_programs", "most_splits"), [(0, 8), (96, 4)])  # of 128 rows
def test_devices_and_rows_decide_no_bit_and_their_sums_fit(
    monkeypatch, shape, form, least_programs, most_splits
):
    """A row's bits follow the depth and the splits of tiles, whose sums have places in the scratch."""
    monkeypatch.setattr(tiles, "_LEAST_WIDE_PROGRAMS", least_programs)
    monkeypatch.setattr(tiles, "_MOST_WIDE_SPLITS", most_splits)
    (outputs, inputs), orders = shape, set()
    weight = empty_weight(outputs, inputs, form)
    for limits, rows in product(LIMITS.values(), (1, 16, 17, 33, 64, 65, 128, 129, 256)):
        tile = tiles.tile_for(outputs, inputs, rows, weight.quantization, limits=limits)
        orders.add((tile.depth, tile.splits))
        places = tiles.num_blocks(rows, tile.rows) * tiles.num_blocks(outputs, tile.outputs)
        numbers, counters = tiles.scratch_size(weight, rows)
        if tile.splits > 1:
            assert places <= counters
            assert places * tile.splits * tile.outputs * tile.rows <= numbers
    assert len(orders) == 1


def test_a_program_takes_as_many_rows_as_there_are_where_enough_programs_and_few_splits_remain(
    monkeypatch,
):
    """Of 5,696 outputs 90 programs would take 65 rows, and 180 take 256; of 2,048 there are 8 splits."""
    monkeypatch.setattr(tiles, "_LEAST_WIDE_PROGRAMS", 96)
    monkeypatch.setattr(tiles, "_MOST_WIDE_SPLITS", 4)

    def sizes(*rows, outputs=37888, form="float", architecture=90):
        limits = LIMITS[architecture]
        return [tiles.tile_for(outputs, 3584, one, form, limits=limits).rows for one in rows]

    assert sizes(1, 16, 17, 32, 33, 64, 65, 256) == [16, 16, 32, 32, 64, 64, 128, 128]
    assert sizes(65, 256, outputs=5696) == [64, 128]
    assert sizes(65, 256, outputs=2048) == [64, 64]
    assert sizes(65, 256, architecture=86) == sizes(65, 256, form="q4_k") == [64, 64]


def test_a_device_that_is_not_in_the_table_is_taken_for_the_nearest_older_one():
    assert limits_for(88).shared_bytes == LIMITS[87].shared_bytes
    assert limits_for(88, 101_376).shared_bytes == 101_376
    assert limits_for(75).architecture == 75


@pytest.mark.parametrize(
    ("chain", "problem"),
    [
        ((0, 32, 64, 96), ""),
        ((0, 32, 64), "a chain of 3 instructions, not 4"),
        ((0, 64, 32, 96), "a chain over [0, 64, 32, 96]"),
    ],
)
def test_a_wrong_order_is_told(chain, problem):
    assert disorder([chain], 64) == problem
