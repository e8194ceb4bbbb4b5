"""How often in a row the local host has ended by itself, and when it may be started again.

A host that ends as it should empties its record. One that is killed while it loads leaves it, after
however long a load; only a host that has served for a while begins the count anew. All under the
lock of who starts hosts.
"""

import signal
import time

import msgspec

from engine.host.runtime import HostRecord, RuntimeFolder

# Before the host is started again after so many ends: at once, then after ever longer pauses.
PAUSES_S = (0.0, 60.0, 300.0, 3600.0)
_IN_WORDS = {60.0: "a minute", 300.0: "five minutes", 3600.0: "an hour"}
_LAST_WORDS = 3  # lines of the log in a sentence


def boot_s() -> float:
    """Seconds since the machine was started: the same for all processes, whoever sets the clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def noted_end(folder: RuntimeFolder) -> HostRecord | None:
    """The record of a host that is gone and did not end well, its end counted once."""
    record = folder.read_record()
    if record is not None and record.failed_at is None:
        record = counted(record)
        folder.write_record(record)
    return record


def counted(record: HostRecord) -> HostRecord:
    """What the record of a host that is gone says, its own end counted."""
    if record.failed_at is not None:
        return record
    failures = 1 if record.has_served else record.failures + 1
    return msgspec.structs.replace(record, failures=failures, failed_at=boot_s())


def may_start(record: HostRecord, asked_at: float) -> bool:
    """Whether a host may be started after the one of `record`, which was counted.

    A person who asked for a host after that one was started need not wait.
    """
    if record.failed_at is None or record.started_at < asked_at:
        return True
    since_s = boot_s() - record.failed_at
    return since_s < 0 or since_s >= _pause_s(record)  # below 0: the machine was started since


def failure_sentence(folder: RuntimeFolder, record: HostRecord) -> str:
    """What happened, the host's last words, and what comes next."""
    words = " | ".join(filter(str.strip, folder.read_log(_LAST_WORDS))) or "it said nothing"
    ends = (
        "has ended by itself"
        if record.failures == 1
        else f"has ended {record.failures} times in a row"
    )
    pause_s = _pause_s(record)
    again = f"is tried again after {_IN_WORDS[pause_s]}; " if pause_s else ""
    return (
        f"the completion host {ends}: {words} (log: {folder.log_path}; it {again}"
        "`foregram stop` lets it be tried at once)"
    )


def note_signal(folder: RuntimeFolder, exit_status: int) -> None:
    """Add to the log what a host that was killed could not say itself."""
    if exit_status >= 0:
        return
    name = signal.Signals(-exit_status).name
    cause = ", as systems do where memory runs out" if -exit_status == signal.SIGKILL else ""
    with folder.log_path.open("a") as log:
        log.write(f"the host was ended by {name}{cause}\n")


def _pause_s(record: HostRecord) -> float:
    return PAUSES_S[min(record.failures, len(PAUSES_S)) - 1]
