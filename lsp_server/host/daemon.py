"""The local completion host as a daemon: found or started, and stopped. It loads no torch.

A process that starts a host holds the lock of the runtime folder, so ten windows that open at once
get one host. Waiting leaves the event loop free.

Under the same lock an older version's host is ended: once it is idle, or at once if it is of an
older protocol. The newer version always wins, so editors of two versions do not take turns. A
version whose host crashed at its start replaces nothing, until `foregram stop` or another version.
"""

import asyncio
import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import httpx2

from engine.host.runtime import HostRecord, RuntimeFolder
from engine.version import VERSION
from lsp_server.host.address import HostAddress, HostError, host_address
from lsp_server.host.failures import (
    boot_s,
    counted,
    failure_sentence,
    may_start,
    note_signal,
    noted_end,
)
from lsp_server.host.probe import ProbeResult, is_idle, precedes, probe
from lsp_server.settings import Settings

_LOG = logging.getLogger(__name__)
POLL_S = 0.05
START_LIMIT_S = 60.0  # until a host answers at all; it loads its model after that
STOP_LIMIT_S = 15.0  # a host drains for ten seconds; then the same again after SIGTERM
COLLECT_S = 1.0


async def ensure_host(
    settings: Settings, command: Sequence[str] | None = None, *, wanted_at: float = 0.0
) -> HostAddress:
    """The address of a host: the remote one, or the local one, which is started if need be.

    A local host answers, but its model may still be loading. One that crashes is restarted at
    once, then after ever longer pauses, in which HostError holds the end of its log. If a person
    wanted it since, at `wanted_at` (of `boot_s`), there is no pause, and one that could not load its
    model is replaced: what was wrong may be right by now.
    """
    address = host_address(settings)
    if settings.host_url is None:
        await LocalHost(settings, command).ensure(wanted_at)
    return address


def explained(settings: Settings, result: ProbeResult) -> ProbeResult:
    """The result; where the local host has crashed, with what is known of that."""
    if result.kind != "absent" or settings.host_url is not None:
        return result
    folder = RuntimeFolder.open(settings.runtime_folder)
    record = folder.read_record()
    if record is None or folder.host_is_alive():
        return result
    return replace(result, reason=failure_sentence(folder, counted(record)))


async def stop_host(settings: Settings, report: Callable[[str], None] = lambda _: None) -> bool:
    """Stop the local host; whether there was one. Raises HostError if it does not end.

    `report` is called with each further attempt.
    """
    if settings.host_url is not None:
        raise HostError(f"the host at {settings.host_url} can only be stopped where it runs")
    return await LocalHost(settings).stop(report)


def serve_command(settings: Settings, folder: RuntimeFolder) -> list[str]:
    """The command line of a local host."""
    # -P: the folder in which an editor was started may have an `engine` of its own.
    command = [sys.executable, "-P", "-m", "lsp_server", "serve"]
    options = {
        "--socket": folder.socket_path,
        "--token-file": folder.token_path,
        "--record": folder.record_path,
        "--idle-exit": settings.idle_exit_s or None,
        "--model": settings.model,
        "--device": settings.device if settings.device != "auto" else None,
        "--dtype": settings.dtype,
        "--kv-budget": settings.kv_budget_mb,
        "--threads": settings.threads,
        "--prompt-tokens": settings.prompt_tokens,
        "--cache-folder": settings.cache_folder,
    }
    for name, value in options.items():
        if value is not None:
            command += [name, str(value)]
    return command


class LocalHost:
    """The host of a runtime folder."""

    def __init__(self, settings: Settings, command: Sequence[str] | None = None) -> None:
        self._folder = RuntimeFolder.open(settings.runtime_folder)
        self._address = HostAddress(self._folder.token(), self._folder.socket_path)
        self._command = command or serve_command(settings, self._folder)
        self._reaper: threading.Thread | None = None

    async def ensure(self, wanted_at: float) -> None:
        """Return when the host answers. Raises HostError."""
        answer = await probe(self._address)
        if not self._is_outdated(answer, wanted_at) and _is_up(answer):
            return
        async with self._lock():
            await self._end_outdated(wanted_at)
            if await self._answers():
                return
            while (record := noted_end(self._folder)) is None or may_start(record, wanted_at):
                self._start(record)
                if await self._answers():
                    return
                if self._reaper is not None:  # until the log says what is known of the end
                    await asyncio.to_thread(self._reaper.join, COLLECT_S)
        raise HostError(failure_sentence(self._folder, record))

    async def stop(self, report: Callable[[str], None]) -> bool:
        """Ask the host to end, then send signals; whether there was one. Raises HostError."""
        answer = await probe(self._address)
        was_there = answer.kind != "absent" or self._folder.host_is_alive()
        if was_there:
            await self._end(self._process_id(answer), report)
        async with self._lock():
            if not self._folder.host_is_alive():
                self._folder.forget_host()
        return was_there

    def _is_outdated(self, answer: ProbeResult, wanted_at: float) -> bool:
        """Whether another host takes the place of the one that gave this answer.

        One that could not load its model serves nobody, so it is replaced for a person that wanted a
        host since. One of another protocol serves no editor of this version, so its own are no matter.
        """
        record, status = self._folder.read_record(), answer.status
        has_crashed = record is not None and record.crashed == VERSION
        if status is None:
            is_older = record is not None and precedes(record.version, VERSION)
            return answer.code == "wrong_protocol" and is_older and not has_crashed
        if record is not None and status.state == "failed" and record.started_at < wanted_at:
            return True
        return precedes(status.version, VERSION) and is_idle(status) and not has_crashed

    async def _end_outdated(self, wanted_at: float) -> None:
        """End a host that is replaced; looked at under the lock, so that nobody ends a new one."""
        answer = await probe(self._address)
        if self._is_outdated(answer, wanted_at):
            _LOG.info("the host of another version, or without a model, is replaced")
            await self._end(self._process_id(answer), _LOG.info)
            self._folder.forget_host()  # it was told to end, so it did not crash

    async def _answers(self) -> bool:
        """Whether a host answers before its process ends, if there is one at all."""
        deadline = time.monotonic() + START_LIMIT_S
        while not _is_up(answer := await probe(self._address)):
            # Looked at after the probe: a process that is gone by now has not begun to listen since.
            if answer.kind == "absent" and not self._folder.host_is_alive():
                return False
            if time.monotonic() > deadline:
                raise HostError(
                    f"the model's process has not answered for {START_LIMIT_S:.0f} s; `foregram "
                    "logs` may say why, `foregram stop` ends it"
                )
            await asyncio.sleep(POLL_S)
        return True

    def _start(self, former: HostRecord | None) -> None:
        # Not in a thread: a cancelled caller would release the lock while the process is started.
        self._folder.socket_path.unlink(missing_ok=True)
        self._folder.log.rotate()
        with self._folder.claimed_record() as claim, self._folder.log.opened() as log:
            try:
                process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # it outlives the editor, and its Ctrl-C
                    cwd="/",  # what a repository holds must not be found by a relative path
                    pass_fds=(claim,),
                )
            except OSError as error:
                reason = f"{self._command[0]}: {error.strerror}"
                raise HostError(f"the model's process cannot be started: {reason}") from error
            failures, crashed = (former.failures, former.crashed) if former else (0, "")
            self._folder.write_record(
                HostRecord(
                    process.pid, boot_s(), failures=failures, version=VERSION, crashed=crashed
                )
            )
        # Reaps the process when it ends, if this one lives that long.
        self._reaper = threading.Thread(target=self._reap, args=(process,), daemon=True)
        self._reaper.start()

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(OSError, ValueError):  # the folder is gone by then; a signal without a name
            note_signal(self._folder, process.wait())

    def _process_id(self, answer: ProbeResult) -> int | None:
        if answer.status:
            return answer.status.pid
        record = self._folder.read_record()
        return record.pid if record and self._folder.host_is_alive() else None

    async def _end(self, pid: int | None, report: Callable[[str], None]) -> None:
        endings: list[signal.Signals | None] = [None]
        with suppress(httpx2.HTTPError):
            async with self._address.client() as client:
                if (await client.post("/v1/stop")).is_client_error and pid is not None:
                    endings = []  # it takes no such request from this version
        endings += [] if pid is None else [signal.SIGTERM, signal.SIGKILL]
        for ending in endings:
            if ending is not None and pid is not None:
                report(f"the completion host (process {pid}) still runs: sending it {ending.name}")
                with suppress(ProcessLookupError):
                    os.kill(pid, ending)
            if await self._is_gone(pid):
                return
        what = "what listens" if pid is None else f"the completion host (process {pid})"
        raise HostError(f"{what} on {self._address.endpoint} does not end")

    async def _is_gone(self, pid: int | None) -> bool:
        """Whether that process ends, although an editor may have started another one meanwhile."""
        deadline = time.monotonic() + STOP_LIMIT_S
        while True:
            answer = await probe(self._address)
            if answer.kind == "absent" and not self._folder.host_is_alive():
                return True
            successor = self._process_id(answer)
            if pid is not None and successor not in (None, pid):
                return True
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(POLL_S)

    @asynccontextmanager
    async def _lock(self) -> AsyncIterator[None]:
        with self._folder.lock_path.open("ab") as file:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                await asyncio.sleep(POLL_S)
            yield


def _is_up(answer: ProbeResult) -> bool:
    if answer.kind == "refused":
        raise HostError(answer.reason)
    if answer.kind == "still":
        raise HostError(f"{answer.reason}; `foregram stop` ends it")
    return answer.status is not None and answer.status.state != "stopping"
