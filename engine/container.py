"""What a container leaves of its machine: the limits of Linux' control groups, of both versions."""

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/proc/self/cgroup")  # lines of number:controllers:path; version 2 names none
_ROOT = Path("/sys/fs/cgroup")
_CACHED = ("active_file", "inactive_file")  # pages that can be read from files again


def memory_left() -> float:
    """Return the bytes that the tightest limit leaves; infinite without one."""
    return min(map(_left_by, _folders("memory")), default=math.inf)


def processors() -> float:
    """Return how many processors' time the tightest limit leaves; infinite without one."""
    return min(map(_share_by, _folders("cpu")), default=math.inf)


def _folders(controller: str) -> Iterator[Path]:
    """Yield the groups of this process and those above; a container may see its own as the root."""
    try:
        lines = _GROUPS.read_text("utf-8").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            root = _ROOT / controller if controllers else _ROOT
            own = root / path.lstrip("/")
            yield from (one for one in (own, *own.parents) if one.is_relative_to(root))


def _left_by(folder: Path) -> float:
    limit = _words(folder / "memory.max", folder / "memory.limit_in_bytes")
    used = _words(folder / "memory.current", folder / "memory.usage_in_bytes")
    if not (limit and used and limit[0].isdecimal()):  # "max" is none
        return math.inf
    stat = _words(folder / "memory.stat")
    held = dict(zip(stat[::2], map(int, stat[1::2]), strict=True))
    cached = sum(held.get(f"total_{name}", held.get(name, 0)) for name in _CACHED)
    return int(limit[0]) - int(used[0]) + cached


def _share_by(folder: Path) -> float:
    share = _words(folder / "cpu.max") or [
        *_words(folder / "cpu.cfs_quota_us"),
        *_words(folder / "cpu.cfs_period_us"),
    ]
    is_limited = share and share[0].isdecimal()  # "max" and "-1" are none
    return int(share[0]) / int(share[1]) if is_limited else math.inf


def _words(*paths: Path) -> list[str]:
    """Return the words of the first file that is there."""
    for path in paths:
        with suppress(OSError):
            return path.read_text("utf-8").split()
    return []
