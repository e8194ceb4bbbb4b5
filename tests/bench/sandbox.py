"""Runs a program that a model wrote, in a process of its own with limits.

It guards against accidents (endless loops, memory, stray files), and is no security boundary.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

PASSED = 73  # exit status; 0 would also pass programs that exit early

# The new process sets its own limits: a function between fork and exec would run in a process with
# torch's threads.
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


_CPU_S = 5
_MEMORY_BYTES, _FILE_BYTES = 1 << 30, 1 << 20  # bytes of address space; of each file


def runs_through(program: str, wall_s: float = 10.0, cpu_s: int = _CPU_S) -> bool:
    """Whether the Python program reaches its end, without an exception and within its limits.

    It runs isolated (`python -I`), in an empty folder, without input, output and environment.
    """
    with TemporaryDirectory(prefix="foregram-") as folder:
        (Path(folder) / "program.py").write_bytes(program.encode("utf-8", "replace"))
        numbers = (cpu_s, _MEMORY_BYTES, _FILE_BYTES, PASSED)
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
            return process.wait(wall_s) == PASSED
        except subprocess.TimeoutExpired:
            return False
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with its children
            process.wait()
