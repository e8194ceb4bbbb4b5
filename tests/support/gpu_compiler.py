"""Compiles Triton kernels for any GPU on a machine without one, and tells what they cost.

It is a process of its own, since Triton's interpreter, once switched on, stays on:

    python -m tests.support.gpu_compiler    # reads a line of JSON per kernel, answers with one

The Triton wheel brings ptxas and cuobjdump. `triton.compile` does not check the shared memory, so
its users have to.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from tests.support.compiled_kernel import Compiled, measured

_HOPPER = 90


class GpuCompiler:
    """The process. Use as a context. `triton` is a folder with another Triton, if any is meant."""

    def __init__(self, triton: Path | None = None) -> None:
        environ = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        if triton is not None:
            environ["PYTHONPATH"] = str(triton)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.gpu_compiler"],
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
        architecture: int = _HOPPER,
        reads_code: bool = False,
    ) -> Compiled:
        """Compile `kernel`, written `module:name`.

        `types` of its arguments as Triton writes them (`*bf16`, `i32`); pointers and the integers
        in `aligned` are multiples of 16, as they are at run time. `options` are what else the
        launch passes to Triton, as `enable_fp_fusion`. `reads_code`: see `measured`.
        """
        task = {
            "kernel": kernel,
            "architecture": architecture,
            "types": dict(types),
            "constants": dict(constants),
            "aligned": list(aligned),
            "options": {"num_warps": num_warps, "num_stages": num_stages} | dict(options or {}),
            "reads_code": reads_code,
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
    target = GPUTarget("cuda", task["architecture"], 32)
    compiled = triton.compile(source, target=target, options=task["options"])
    return measured(compiled, folder, reads_code=task["reads_code"])


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
