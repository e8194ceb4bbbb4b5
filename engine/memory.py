"""How much memory this process takes."""

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def resident_bytes() -> int:
    """What is in memory now; where no system file tells (macOS), the most so far."""
    return _told("VmRSS") or _most_by_usage()


def peak_resident_bytes() -> int:
    """The most that was in memory so far."""
    return _told("VmHWM") or _most_by_usage()


def _told(name: str) -> int:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def _most_by_usage() -> int:
    # Linux counts here what the parent had when it started this process, too.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
