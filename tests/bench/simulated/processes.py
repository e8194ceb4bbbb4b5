"""Processor time of processes and of those that they started; Linux only."""

import os
import signal
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(process_id: int, without: Collection[int] = ()) -> float:
    """Return the processor seconds of a process and its children, ended ones included.

    Processes in `without` do not count, even if it started them.
    """
    times = _times()
    total, waiting = 0.0, [process_id]
    while waiting:
        one = waiting.pop()
        total += times[one].cpu_s if one in times else 0.0
        children = [child for child, time in times.items() if time.parent == one]
        waiting += [child for child in children if child not in without]
    return total


def stop(process_ids: Iterable[int]) -> None:
    _signal(process_ids, signal.SIGSTOP)


def resume(process_ids: Iterable[int]) -> None:
    _signal(process_ids, signal.SIGCONT)


def _signal(process_ids: Iterable[int], kind: signal.Signals) -> None:
    for process_id in process_ids:
        with suppress(ProcessLookupError):
            os.kill(process_id, kind)


class _Time(NamedTuple):
    parent: int
    cpu_s: float


def _times() -> dict[int, _Time]:
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The second field is a name in parentheses, which may contain anything.
            fields = path.read_text().rpartition(")")[2].split()
            ticks = sum(int(value) for value in fields[11:15])
            found[int(path.parent.name)] = _Time(int(fields[1]), ticks / _TICKS)
    return found
