"""Greedy kernels, with the oldest Triton and with the newest; `make kernels` compiles all of them."""

import os
import subprocess
import sys

import pytest

from kernels.device_limits import AMD, LIMITS, assumed, limits_for, limits_of
from kernels.product.tiles import tile_for
from kernels.weight import QUANTIZATIONS
from tests.support.matrix_order import disorder

pytestmark = pytest.mark.timeout(300)  # of compiling
SHAPES = [(896, 896), (4608, 3584), (3584, 18944), (37888, 3584), (152064, 5120)]


def compile_all(options, triton_folder):
    environ = {"PYTHONPATH": str(triton_folder or ""), "PATH": os.defpath}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.compile_all", "--workers", "1", *options.split()],
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failures" in done.stdout


@pytest.mark.parametrize(
    ("architecture", "forms", "rows", "operations"),
    [
        ("80", "float", 64, "skinny_matmul"),
        ("86", "fp8,q4_k", 64, "skinny_matmul,batch_attention"),
        ("90", "int4", 16, "skinny_matmul,batch_attention"),
        ("90", "fp8", 16, "skinny_matmul,lm_head"),
        ("90", "fp8,int4", 64, "skinny_matmul"),
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


def test_all_kernels_of_a_model_compile(triton_folder):
    compile_all("--models 0.5b --forms float --architectures 90-early", triton_folder)


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_device_and_no_number_of_rows_decides_what_decides_bits(shape, quantization):
    outputs, inputs = shape
    tiles = [
        tile_for(outputs, inputs, rows, quantization, limits=limits)
        for limits in (*LIMITS.values(), *([AMD] if quantization == "float" else []))
        for rows in (1, 16, 17, 64, 128, 256)
    ]
    assert len({(tile.depth, tile.splits) for tile in tiles}) == 1


def test_a_device_that_is_not_in_the_table_is_taken_for_the_nearest_older_one():
    assert limits_for(88).shared_bytes == LIMITS[87].shared_bytes
    assert limits_for(88, 101_376).shared_bytes == 101_376
    assert limits_for(75).architecture == 75


def test_limits_are_assumed_within_a_block(device):
    with assumed(LIMITS[120]):
        assert limits_of(device) == LIMITS[120]
    assert limits_of(device) != LIMITS[120]


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
