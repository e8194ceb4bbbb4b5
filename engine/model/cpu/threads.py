"""How many threads compute on a CPU where the user does not say."""

import math
import os
import subprocess
import sys
from pathlib import Path

from engine import container

_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
_OF_APPLE = ("hw.perflevel0.physicalcpu", "hw.physicalcpu")  # cores of the fast kind; all cores


def default_threads() -> int:
    """Return OMP_NUM_THREADS, which Ray sets for a replica's share, else the number of cores."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdecimal() and int(told) else _num_cores()


def _num_cores() -> int:
    """Count the cores that this process may use. Two threads of a core share what multiplies."""
    try:
        if sys.platform == "darwin":
            command = ("/usr/sbin/sysctl", "-n", "-i", *_OF_APPLE)  # -i: without those unknown
            return int(subprocess.check_output(command, text=True).split()[0])
        usable = os.sched_getaffinity(0)
    except (AttributeError, IndexError, OSError, ValueError, subprocess.SubprocessError):
        return os.cpu_count() or 1
    try:
        cores = len({Path(_SIBLINGS.format(one)).read_text("ascii") for one in usable})
    except (OSError, ValueError):  # some sandboxes hide them
        cores = len(usable)
    return math.ceil(min(cores, container.processors()))
