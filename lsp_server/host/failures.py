"""Counts the local host's crashes in a row, and decides when it may be started again.

A host that ends properly empties its record. One killed while loading leaves it, and only one that
has served for a while resets the count. All of this happens under the lock for starting hosts.
"""

import signal
import subprocess
import time
from contextlib import suppress

import msgspec

from engine.host.runtime import HostRecord, RuntimeFolder

# Pauses in seconds before a restart after the first crash, the second and so on.
_PAUSES = ((0.0, ""), (60.0, "a minute"), (300.0, "five minutes"), (3600.0, "an hour"))
_CAUSES: dict[int, str] = {
    signal.SIGKILL: ", as systems do when memory runs out",
    signal.SIGBUS: ", as where its model's file is cut short",
}
_LAST_WORDS = 3  # last lines of the log quoted in a message


def boot_s() -> float:
    """Return seconds since the machine started: equal in all processes, whatever the clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def noted_end(folder: RuntimeFolder) -> HostRecord | None:
    """Count a crash once, and return the record of the host that crashed."""
    record = folder.read_record()
    if record is not None and record.failed_at is None:
        record = counted(record)
        folder.write_record(record)
    return record


def counted(record: HostRecord) -> HostRecord:
    """Return the record of a crashed host with its crash counted."""
    if record.failed_at is not None:
        return record
    failures, crashed = record.failures + 1, record.version
    if record.has_served:  # this version is known to start
        failures, crashed = 1, "" if record.crashed == record.version else record.crashed
    return msgspec.structs.replace(record, failures=failures, failed_at=boot_s(), crashed=crashed)


def may_start(record: HostRecord, wanted_at: float) -> bool:
    """Whether a host may start after a counted crash: at once if wanted since that host began."""
    if record.failed_at is None or record.started_at < wanted_at:
        return True
    since_s = boot_s() - record.failed_at
    return since_s < 0 or since_s >= _pause(record)[0]  # below 0: the machine was restarted


def failure_sentence(folder: RuntimeFolder, record: HostRecord) -> str:
    """Say in a sentence that the host crashed, the end of its log and what comes next."""
    words = " | ".join(filter(str.strip, folder.log.read(_LAST_WORDS))) or "it printed nothing"
    crashed = "crashed" if record.failures == 1 else f"crashed {record.failures} times in a row"
    _, pause = _pause(record)
    again = f"it is restarted after {pause}; " if pause else ""
    return (
        f"the model's process {crashed}: {words} (log: {folder.log.path}; {again}after "
        "`foregram stop` it may restart at once)"
    )


def note_signal(folder: RuntimeFolder, host: subprocess.Popen[bytes]) -> None:
    """Wait for a host's end, and log a signal that killed it, as it could not log that itself."""
    number = -host.wait()
    with suppress(OSError, ValueError):  # the folder is gone, or no known signal ended it
        line = f"the host was killed by {signal.Signals(number).name}{_CAUSES.get(number, '')}\n"
        with folder.log.opened() as log:
            log.write(line.encode())


def _pause(record: HostRecord) -> tuple[float, str]:
    return _PAUSES[min(record.failures, len(_PAUSES)) - 1]
