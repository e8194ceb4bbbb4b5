"""How much memory this process takes."""

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def resident_bytes() -> int:
    """What is in memory now; on macOS, which has no file for it, the peak."""
    return _status_bytes("VmRSS") or _peak_by_usage()


def peak_resident_bytes() -> int:
    """The peak so far."""
    return _status_bytes("VmHWM") or _peak_by_usage()


def _status_bytes(name: str) -> int:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def _peak_by_usage() -> int:
    # On Linux this includes what the parent had when it started this process.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
