"""What processes that compile may meet. Light to import, as each of them does it anew."""

import os
import signal
from typing import Any


def aborting(task: Any) -> None:
    """As LLVM does, of `gate_up` alone."""
    if task.only in ("", "gate_up"):
        os.abort()


def killed(_: Any) -> None:
    """As by a system without memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def raising(_: Any) -> None:
    """As Triton does most often."""
    raise RuntimeError("no such instruction")
