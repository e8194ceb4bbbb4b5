"""The resources of a kernel that Triton compiled, read from its PTX and its machine code."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.matrix_order import chains

_REGISTERS = 65536  # registers of a multiprocessor
_THREADS = {80: 2048, 90: 2048, 100: 2048}  # threads of a multiprocessor; else 1536
_SHARED = {80: 167_936, 87: 167_936, 90: 233_472, 100: 233_472}  # bytes; else 102,400
_RESERVED = 1024  # bytes of shared memory that the system reserves per program
_WARP = 32
# As PTX writes them: of a warp group, for 64 rows; of a warp; of Blackwell's data-centre GPUs.
_MATRIX = {"wgmma.mma_async": "wgmma", "mma.sync": "mma.sync", "tcgen05.mma": "tcgen05"}


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel's resources; instructions are counted as they appear in the text."""

    stack: int  # bytes of a thread: spilled registers, and arrays indexed at run time
    programs_per_sm: int
    matrix_instruction: str  # the one of all products; `none`, or `several`
    copies_ahead: int  # asynchronous copies: loads that run ahead
    chains: Sequence[Sequence[int]]  # where the matrix instructions of each chain find their inputs
    fuses: bool  # multiplies and adds with one rounding, or lets ptxas choose


def measured(kernel: Any, folder: Path) -> Compiled:
    import triton

    cubin, threads = folder / "kernel.cubin", _WARP * kernel.metadata.num_warps
    cubin.write_bytes(kernel.asm["cubin"])
    dumper = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    command = [str(dumper), "-res-usage", str(cubin)]
    usage = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack = (
        int(re.search(rf"{name}:(\d+)", usage).group(1)) for name in ("REG", "STACK")
    )
    ptx, architecture = kernel.asm["ptx"], kernel.metadata.target.arch
    used = [name for name in _MATRIX if name in ptx]
    return Compiled(
        stack=stack,
        programs_per_sm=min(
            _REGISTERS // (-(-registers // 8) * 8 * threads),
            _SHARED.get(architecture, 102_400) // (kernel.metadata.shared + _RESERVED),
            _THREADS.get(architecture, 1536) // threads,
        ),
        matrix_instruction=_MATRIX[used[0]] if len(used) == 1 else ("several" if used else "none"),
        copies_ahead=len(re.findall(r"\bcp\.async\.c[ag]\.", ptx)),
        chains=chains(ptx),
        fuses=kernel.metadata.enable_fp_fusion or "fma.rn.f32" in ptx,
    )
