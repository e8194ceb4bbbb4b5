"""Compiles a skinny product for sm_90 as its launcher would."""

from collections.abc import Iterable, Mapping
from typing import Any

from kernels.product.tiles import tile_for
from kernels.weight import Quantization
from tests.support.hopper import SHARED_BYTES, Compiled, HopperCompiler

_WEIGHTS = {"float": "*bf16", "fp8": "*fp8e4nv", "int4": "*u8"}


def compile_product(
    hopper: HopperCompiler,
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
) -> Compiled:
    """Compile a product of N outputs and K inputs; `types` of what is the kernel's own."""
    tile = tile_for(*shape, rows, quantization, whole=whole)
    held = {"INPUTS": "*bf16", "VALUES": _WEIGHTS[quantization], "num_rows": "i32"} | dict(types)
    cut: dict[str, Any] = {
        "N": shape[0],
        "K": shape[1],
        "QUANTIZATION": quantization,
        "DEPTH": tile.depth,
        "PDL": programmatic,
    }
    cut |= {"SPLITS": tile.splits, "ROWS": tile.rows} | dict(constants)
    if quantization == "float":
        cut["SCALES"] = None
    else:
        held["SCALES"] = "*fp32"
    return hopper.compile(
        kernel,
        held,
        cut,
        aligned=aligned,
        num_warps=tile.num_warps,
        num_stages=tile.num_stages,
        options={"enable_fp_fusion": False, "launch_pdl": programmatic},
    )


def assert_fits(compiled: Compiled, programs: int = 1, *, has_logarithms: bool = False) -> None:
    """Loads ahead, spills nothing, fuses no more than logarithms do, and `programs` share an SM."""
    assert compiled.shared <= SHARED_BYTES
    assert compiled.stack == 0
    assert compiled.hgmma > 0
    assert compiled.hmma == 0
    assert has_logarithms or compiled.ffma == 0
    assert compiled.ldgsts > 0
    assert compiled.programs_per_sm >= programs
