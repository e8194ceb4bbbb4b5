"""Compiles a skinny product as its launcher would."""

from collections.abc import Iterable, Mapping
from typing import Any

from kernels.device_limits import limits_for
from kernels.product.tiles import tile_for
from kernels.weight import Quantization
from tests.support.compiled_kernel import Compiled
from tests.support.gpu_compiler import GpuCompiler

_WEIGHTS = {"float": "*bf16", "fp8": "*fp8e4nv", "q8_0": "*i8"}  # of the others bytes
_FLOAT_SCALES = ("fp8", "int4")


def compile_product(
    hopper: GpuCompiler,
    kernel: str,
    shape: tuple[int, int],
    rows: int,
    types: Mapping[str, str],
    constants: Mapping[str, Any],
    *,
    quantization: Quantization = "float",
    whole: bool = False,
    aligned: Iterable[str] = (),
    programmatic: bool = False,
    architecture: int = 90,
    reads_code: bool = False,
) -> Compiled:
    """Compile a product of N outputs and K inputs; `types` of what is the kernel's own."""
    limits = limits_for(architecture)
    tile = tile_for(*shape, rows, quantization, whole=whole, limits=limits)
    is_bytes = quantization == "fp8" and not limits.converts_fp8
    values = "*u8" if is_bytes else _WEIGHTS.get(quantization, "*u8")
    held = {"INPUTS": "*bf16", "VALUES": values, "num_rows": "i32"} | dict(types)
    cut: dict[str, Any] = {
        "N": shape[0],
        "K": shape[1],
        "QUANTIZATION": quantization,
        "DEPTH": tile.depth,
        "PDL": programmatic,
    }
    cut |= {
        "SPLITS": tile.splits,
        "ROWS": tile.rows,
        "OUTPUTS": tile.outputs,
        "STAGES": tile.num_stages,
    }
    cut |= {"GROUPS": tile.groups} | dict(constants)
    if quantization == "float":
        cut["SCALES"] = None
    else:
        held["SCALES"] = "*fp32" if quantization in _FLOAT_SCALES else "*i32"
    return hopper.compile(
        kernel,
        held,
        cut,
        aligned=aligned,
        num_warps=tile.num_warps,
        num_stages=tile.num_stages,
        options={"enable_fp_fusion": False, "launch_pdl": programmatic},
        architecture=architecture,
        reads_code=reads_code,
    )


def assert_fits(compiled: Compiled, programs: int = 1, *, has_logarithms: bool = False) -> None:
    """Loads ahead, spills nothing, fuses no more than logarithms do, and `programs` share an SM."""
    assert compiled.shared <= limits_for(90).shared_bytes
    assert compiled.stack == 0
    assert compiled.matrix_instruction == "wgmma"
    assert has_logarithms or compiled.ffma == 0
    assert compiled.copies_ahead > 0
    assert compiled.programs_per_sm >= programs
