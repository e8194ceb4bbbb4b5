"""What a kernel that Triton compiled takes of a GPU: read off the machine code."""

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
_LOCAL = re.compile(r"\b(LDL|STL)\b")  # memory of a thread's own
_INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(\S.*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a kernel takes; instructions are counted as they stand in the machine code."""

    stack: int  # bytes of a thread: what is spilled, and arrays indexed at run time
    spilled_in_loop: int  # instructions of its innermost loops that read or write them
    shared: int  # bytes of a program
    programs_per_sm: int
    hgmma: int  # matrix instructions of a warp group, for 64 rows
    hmma: int  # those of a warp
    utcmma: int  # those of Blackwell's data-centre GPUs
    ffma: int  # fused multiplications and additions: those written so, where the rest may not be
    ldgsts: int  # asynchronous copies: loads that run ahead
    chains: Sequence[Sequence[int]]  # where each chain of matrix instructions finds its inputs

    @property
    def matrix_instruction(self) -> str:
        """The one that all products take; `none`, or `several`, where that is so."""
        counts = {"wgmma": self.hgmma, "mma.sync": self.hmma, "tcgen05": self.utcmma}
        used = [name for name, count in counts.items() if count]
        return used[0] if len(used) == 1 else ("several" if used else "none")


def measured(kernel: Any, folder: Path) -> Compiled:
    """Read a kernel of Triton's, by way of a file in `folder`."""
    import triton

    cubin, threads = folder / "kernel.cubin", _WARP * kernel.metadata.num_warps
    cubin.write_bytes(kernel.asm["cubin"])
    dumper = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"

    def dump(flag: str) -> str:
        return subprocess.run(
            [dumper, flag, cubin], capture_output=True, text=True, check=True
        ).stdout

    usage, code = dump("-res-usage"), dump("--dump-sass")
    loops = _loops(code)
    registers, shared = int(re.search(r"REG:(\d+)", usage).group(1)), kernel.metadata.shared
    architecture = kernel.metadata.target.arch

    def count(name: str) -> int:
        return len(re.findall(rf"\b{name}", code))

    return Compiled(
        stack=int(re.search(r"STACK:(\d+)", usage).group(1)),
        shared=shared,
        programs_per_sm=min(
            _REGISTERS // (-(-registers // 8) * 8 * threads),
            _SHARED.get(architecture, 102_400) // (shared + _RESERVED),
            _THREADS.get(architecture, 1536) // threads,
        ),
        hgmma=count("HGMMA"),
        hmma=count("HMMA"),
        utcmma=count("UTC[A-Z]*MMA"),
        ffma=count("FFMA"),
        ldgsts=count("LDGSTS"),
        chains=chains(kernel.asm["ptx"]),
        spilled_in_loop=sum(bool(_LOCAL.search(text)) for one in _innermost(loops) for text in one),
    )


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
