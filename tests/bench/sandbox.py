"""Runs a program that a model wrote, in a process of its own with limits.

It guards against accidents (endless loops, memory, stray files); it is no security boundary.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

PASSED = 73  # a program that ends itself early has not passed, so 0 is not enough

# The limits are set inside the new process: a function between fork and exec would run in a
# process with torch's threads.
_RUNNER = """
import os, resource, sys
cpu_s, memory, file_bytes, passed = map(int, sys.argv[1:])
for limit, value in (
    (resource.RLIMIT_CPU, cpu_s),
    (resource.RLIMIT_AS, memory),
    (resource.RLIMIT_FSIZE, file_bytes),
    (resource.RLIMIT_CORE, 0),
):
    try:
        resource.setrlimit(limit, (value, value))
    except (OSError, ValueError):
        pass  # macOS refuses RLIMIT_AS
with open("program.py", encoding="utf-8") as file:
    program = compile(file.read(), "program.py", "exec")
exec(program, {"__name__": "__main__"})
os._exit(passed)
"""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What a program may take."""

    wall_s: float = 10.0
    cpu_s: int = 5
    memory_bytes: int = 1 << 30  # address space
    file_bytes: int = 1 << 20


def runs_through(program: str, limits: SandboxLimits | None = None) -> bool:
    """Whether the Python program reaches its end, without an exception and within the limits.

    It runs isolated (`python -I`), in an empty folder, without input, output and environment.
    """
    limits = limits or SandboxLimits()
    with TemporaryDirectory(prefix="foregram-") as folder:
        text = program.encode("utf-8", "replace")
        (Path(folder) / "program.py").write_bytes(text)
        numbers = (limits.cpu_s, limits.memory_bytes, limits.file_bytes, PASSED)
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _RUNNER, *map(str, numbers)],
            cwd=folder,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(limits.wall_s) == PASSED
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end_session(process)


def _end_session(process: "subprocess.Popen[bytes]") -> None:
    """End the program and what it may have started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
