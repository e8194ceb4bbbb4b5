"""Compiles Triton kernels for sm_90 on a machine without a GPU, and tells what they cost.

It is a process of its own, since Triton's interpreter, once switched on, stays on:

    python -m tests.support.hopper    # reads a line of JSON per kernel, answers with one

The Triton wheel brings ptxas and cuobjdump. `triton.compile` does not check the shared memory, so
its users have to.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

_REGISTERS, _SHARED_OF_SM, _THREADS = 65536, 233472, 2048  # of a multiprocessor
SHARED_BYTES = 232_448  # that a program may take
_RESERVED = 1024  # bytes of shared memory that the system takes per program
_WARP = 32


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a kernel takes; instructions are counted as they stand in the machine code."""

    registers: int  # of a thread
    stack: int  # bytes of a thread: what is spilled, and arrays indexed at run time
    shared: int  # bytes of a program
    programs_per_sm: int
    hgmma: int  # matrix instructions of a warp group, for 64 rows
    hmma: int  # those of a warp
    ffma: int  # fused multiplications and additions: those written so, where the rest may not be
    ldgsts: int  # asynchronous copies: loads that run ahead


class HopperCompiler:
    """The process, started at the first kernel. Use as a context."""

    def __init__(self) -> None:
        environ = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hopper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=20)
        self._process.stdout.close()

    def compile(
        self,
        kernel: str,
        types: Mapping[str, str],
        constants: Mapping[str, Any],
        *,
        aligned: Iterable[str] = (),
        num_warps: int,
        num_stages: int,
        options: Mapping[str, Any] | None = None,
    ) -> Compiled:
        """Compile `kernel`, written `module:name`.

        `types` of its arguments as Triton writes them (`*bf16`, `i32`); pointers and the integers
        in `aligned` are multiples of 16, as they are at run time. `options` are what else the
        launch passes to Triton, as `enable_fp_fusion`.
        """
        task = {
            "kernel": kernel,
            "types": dict(types),
            "constants": dict(constants),
            "aligned": list(aligned),
            "options": {"num_warps": num_warps, "num_stages": num_stages} | dict(options or {}),
        }
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise AssertionError(f"{kernel} does not compile: {answer['error']}")
        return Compiled(**answer)


def _compile(task: Mapping[str, Any], folder: Path) -> Compiled:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    module, name = task["kernel"].split(":")
    kernel = getattr(importlib.import_module(module), name)
    names, constants, types = list(kernel.arg_names), task["constants"], task["types"]
    aligned = [one for one in names if types.get(one, "").startswith("*") or one in task["aligned"]]
    source = ASTSource(
        fn=kernel,
        signature={one: "constexpr" if one in constants else types[one] for one in names},
        constexprs=constants,
        attrs={
            (names.index(one),): [["tt.divisibility", 16]]
            for one in aligned
            if one not in constants
        },
    )
    target, options = GPUTarget("cuda", 90, _WARP), task["options"]
    compiled = triton.compile(source, target=target, options=options)
    return _measure(compiled, folder / "kernel.cubin", _WARP * options["num_warps"])


def _measure(compiled: Any, cubin: Path, threads: int) -> Compiled:
    import triton

    cubin.write_bytes(compiled.asm["cubin"])
    dumper = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"

    def dump(flag: str) -> str:
        return subprocess.run(
            [dumper, flag, cubin], capture_output=True, text=True, check=True
        ).stdout

    usage, code = dump("-res-usage"), dump("--dump-sass")
    registers, shared = int(re.search(r"REG:(\d+)", usage).group(1)), compiled.metadata.shared
    by_registers = _REGISTERS // (-(-registers // 8) * 8 * threads)
    return Compiled(
        registers=registers,
        stack=int(re.search(r"STACK:(\d+)", usage).group(1)),
        shared=shared,
        programs_per_sm=min(
            by_registers, _SHARED_OF_SM // (shared + _RESERVED), _THREADS // threads
        ),
        hgmma=len(re.findall(r"\bHGMMA", code)),
        hmma=len(re.findall(r"\bHMMA", code)),
        ffma=len(re.findall(r"\bFFMA", code)),
        ldgsts=len(re.findall(r"\bLDGSTS", code)),
    )


def _serve() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        for line in sys.stdin:
            try:
                answer = asdict(_compile(json.loads(line), Path(folder)))
            except Exception as error:  # noqa: BLE001 - the test says what
                answer = {"error": f"{type(error).__name__}: {error}"}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    _serve()
