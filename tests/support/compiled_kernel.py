"""What a kernel that Triton compiled takes of a GPU: read off its PTX and its machine code."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.matrix_order import chains

_REGISTERS = 65536  # of a multiprocessor
_THREADS = {80: 2048, 90: 2048, 100: 2048}  # of a multiprocessor; 1536 of the others
_SHARED = {80: 167_936, 87: 167_936, 90: 233_472, 100: 233_472}  # and 102,400
_RESERVED = 1024  # bytes of shared memory that the system takes per program
_WARP = 32
# As PTX writes them: of a warp group, for 64 rows; of a warp; of Blackwell's data-centre GPUs.
_MATRIX = {"wgmma.mma_async": "wgmma", "mma.sync": "mma.sync", "tcgen05.mma": "tcgen05"}
_LOCAL = re.compile(r"\b(LDL|STL)\b")  # memory of a thread's own
_INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(\S.*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a kernel takes; instructions are counted as they stand in the text."""

    stack: int  # bytes of a thread: what is spilled, and arrays indexed at run time
    spilled_in_loop: int  # instructions of its innermost loops that read or write them
    programs_per_sm: int
    matrix_instruction: str  # the one that all products take; `none`, or `several`
    copies_ahead: int  # asynchronous copies: loads that run ahead
    chains: Sequence[Sequence[int]]  # where each chain of matrix instructions finds its inputs
    ffma: int  # fused multiplications and additions in the machine code


def measured(kernel: Any, folder: Path) -> Compiled:
    """Read a kernel of Triton's, by way of a file in `folder`."""
    import triton

    cubin, threads = folder / "kernel.cubin", _WARP * kernel.metadata.num_warps
    cubin.write_bytes(kernel.asm["cubin"])
    dumper = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    command = [str(dumper), "-res-usage", "-sass", str(cubin)]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack = (
        int(re.search(rf"{name}:(\d+)", code).group(1)) for name in ("REG", "STACK")
    )
    ptx, architecture = kernel.asm["ptx"], kernel.metadata.target.arch
    used = [name for name in _MATRIX if name in ptx]
    return Compiled(
        stack=stack,
        spilled_in_loop=len(_local(_innermost(_loops(code)))) if stack else 0,
        programs_per_sm=min(
            _REGISTERS // (-(-registers // 8) * 8 * threads),
            _SHARED.get(architecture, 102_400) // (kernel.metadata.shared + _RESERVED),
            _THREADS.get(architecture, 1536) // threads,
        ),
        matrix_instruction=_MATRIX[used[0]] if len(used) == 1 else ("several" if used else "none"),
        copies_ahead=len(re.findall(r"\bcp\.async\.c[ag]\.", ptx)),
        chains=chains(ptx),
        ffma=len(re.findall(r"\bFFMA", code)),
    )


def _local(loops: Sequence[Sequence[str]]) -> Sequence[str]:
    """Their instructions that read or write memory of a thread's own."""
    return [text for one in loops for text in one if _LOCAL.search(text)]


def _loops(code: str) -> Sequence[Sequence[str]]:
    """Each loop's instructions with their places, from where a branch back leads to up to it."""
    places = [(int(place, 16), f"{place} {text}") for place, text in _INSTRUCTION.findall(code)]
    loops = []
    for end, text in places:
        target = re.search(r"\bBRA\b[^;]*?0x([0-9a-f]+)", text)
        start = int(target.group(1), 16) if target else end
        if start < end:
            loops.append([text for place, text in places if start <= place <= end])
    return loops


def _innermost(loops: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Those that no other one lies in."""
    ranges = [set(one) for one in loops]
    return [
        one
        for one, own in zip(loops, ranges, strict=True)
        if not any(other < own for other in ranges)
    ]
