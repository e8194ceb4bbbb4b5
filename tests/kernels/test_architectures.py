"""Greedy kernels, with the oldest Triton and with the newest; `make kernels` compiles all of them."""

import os
import subprocess
import sys

import pytest

from kernels import batch_attention
from kernels.batch import KEY_TILE, ROW_TILE
from kernels.batch_attention.triton_kernel import BATCH_ARRAYS
from kernels.device_limits import AMD, LIMITS, assumed, limits_for, limits_of
from kernels.product.tiles import tile_for
from kernels.weight import QUANTIZATIONS
from tests.kernels.compile_all import MATRIX_INSTRUCTIONS, wrong_order
from tests.support.matrix_order import disorder
from tests.support.product_costs import compile_product

KERNEL = "kernels.skinny_matmul.triton_kernel:skinny_matmul_kernel"
TYPES = {
    **dict.fromkeys(("RESIDUAL", "NORM_WEIGHT", "SQUARES", "PARTIALS"), "*fp32"),
    "NORMED": "*bf16",
    "ARRIVED": "*i32",
}
SHAPES = [(896, 896), (4608, 3584), (3584, 18944), (37888, 3584), (152064, 5120)]


@pytest.mark.parametrize(
    ("architecture", "quantization", "rows", "programmatic"),
    [
        (80, "float", 64, False),
        (86, "fp8", 64, False),
        (86, "q4_k", 64, False),
        (90, "int4", 16, False),
        (100, "float", 64, True),
        (100, "int4", 16, False),
        (100, "q6_k_min", 64, False),
        (120, "fp8", 64, True),
    ],
)
def test_a_product_fits_spills_nothing_and_adds_in_order(
    compiler, architecture, quantization, rows, programmatic
):
    compiled = compile_product(
        compiler, KERNEL, (3584, 18944), rows, TYPES, {},
        quantization=quantization, programmatic=programmatic, architecture=architecture,
    )  # fmt: skip
    assert compiled.shared <= LIMITS[architecture].shared_bytes
    assert compiled.stack == 0
    assert compiled.matrix_instruction == MATRIX_INSTRUCTIONS.get(architecture, "mma.sync")
    if architecture != 100:  # the sums of tcgen05 are in no registers that could be followed
        assert wrong_order(compiled, quantization, 128) == ""


@pytest.mark.parametrize(("architecture", "programmatic"), [(86, False), (120, True)])
def test_attention_fits_a_gpu_of_little_shared_memory(compiler, architecture, programmatic):
    limits = LIMITS[architecture]
    types = {
        **dict.fromkeys(("Q", "K", "V"), "*bf16"),
        **dict.fromkeys(BATCH_ARRAYS, "*i32"),
        "PARTIALS": "*fp32",
        "scale": "fp32",
        "head_stride": "i32",
        "capacity": "i32",
    }
    constants = {
        "GROUP": 7, "KV_HEADS": 4, "D": 128, "SPLITS": batch_attention.num_splits(4),
        "TAILS": batch_attention.TAILS, "ROW_TILE": ROW_TILE, "KEY_TILE": KEY_TILE,
        "PDL": programmatic,
    }  # fmt: skip
    compiled = compiler.compile(
        "kernels.batch_attention.triton_kernel:attend_kernel", types, constants,
        aligned=["head_stride"], architecture=architecture,
        options={"enable_fp_fusion": False, "launch_pdl": programmatic},
        **batch_attention.attention_cut(limits, 128)._asdict(),
    )  # fmt: skip
    assert compiled.shared <= limits.shared_bytes
    assert compiled.stack == 0
    assert compiled.matrix_instruction == "mma.sync"


def test_all_kernels_of_a_model_compile(triton_folder):
    command = "-m tests.kernels.compile_all --models 0.5b --forms float --architectures 90-early"
    environ = {"PYTHONPATH": str(triton_folder or ""), "PATH": os.defpath}
    done = subprocess.run(
        [sys.executable, *command.split()],
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_device_and_no_number_of_rows_decides_what_decides_bits(shape, quantization):
    outputs, inputs = shape
    tiles = [
        tile_for(outputs, inputs, rows, quantization, limits=limits)
        for limits in (*LIMITS.values(), *([AMD] if quantization == "float" else []))
        for rows in (1, 16, 17, 64, 128)
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
