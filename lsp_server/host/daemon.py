"""Finds, starts and stops the local completion host. Loads no torch.

A start holds the lock of the runtime folder, so ten windows that open at once get one host. An
older version's host is ended under it: once idle, or at once if its protocol is older. The newer
version always wins, so editors of two versions do not take turns. A version whose host crashed at
its start replaces nothing until `foregram stop` or another version.
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

from engine import VERSION
from engine.host.protocol import Status
from engine.host.runtime import HostRecord, RuntimeFolder
from lsp_server.host.address import HostAddress, HostError, host_address
from lsp_server.host.client import ProbeResult, probe
from lsp_server.host.failures import (
    boot_s,
    counted,
    failure_sentence,
    may_start,
    note_signal,
    noted_end,
)
from lsp_server.settings import Settings

_LOG = logging.getLogger(__name__)
POLL_S = 0.05  # seconds between checks of a starting or ending host; a start takes far longer
START_LIMIT_S = 60.0  # seconds until a host first answers; it loads its model after that
STOP_LIMIT_S = 15.0  # seconds for each attempt to stop; a host drains for ten of them
COLLECT_S = 1.0  # seconds for a thread to log the signal that ended the host
IDLE_S = 60.0  # seconds without a request after which a host with clients is idle


async def ensure_host(
    settings: Settings, command: Sequence[str] | None = None, *, wanted_at: float = 0.0
) -> HostAddress:
    """Return the address of the remote host, or of the local one, started if needed.

    Its model may still be loading. After a crash it is restarted at once, then after ever longer
    pauses. Raises HostError with the end of its log during a pause. `wanted_at`: when the user last
    wanted a host, by `boot_s`. One from before is restarted at once, and replaced without a model.
    """
    address = host_address(settings)
    if settings.host_url is None:
        await LocalHost(settings, command).ensure(wanted_at)
    return address


def explained(settings: Settings, result: ProbeResult) -> ProbeResult:
    """Return the result; if the local host has crashed, with the known reason."""
    if result.kind != "absent" or settings.host_url is not None:
        return result
    folder = RuntimeFolder.open(settings.runtime_folder)
    record = folder.read_record()
    if record is None or folder.host_is_alive():
        return result
    return replace(result, reason=failure_sentence(folder, counted(record)))


async def stop_host(settings: Settings, report: Callable[[str], None] = lambda _: None) -> bool:
    """Stop the local host; return whether one ran. `report` gets each attempt. Raises HostError."""
    if settings.host_url is not None:
        raise HostError(f"the host at {settings.host_url} can only be stopped where it runs")
    return await LocalHost(settings).stop(report)


def serve_command(settings: Settings, folder: RuntimeFolder) -> list[str]:
    """Return the command line of a local host."""
    # -P: the editor's working directory may contain another `engine` package.
    command = [sys.executable, "-P", "-m", "lsp_server", "serve"]
    options = {
        "--socket": folder.socket_path,
        "--token-file": folder.token_path,
        "--record": folder.record_path,
        "--idle-exit": settings.idle_exit_s or None,
        "--model": settings.model,
        "--edit-model": settings.edit_model,
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

    async def ensure(self, wanted_at: float) -> None:
        """Return when the host answers. Raises HostError."""
        answer = await probe(self._address)
        if not self._is_outdated(answer, wanted_at) and _is_up(answer):
            return
        async with self._lock():
            answer = await probe(self._address)  # again, so that no new host is ended
            if self._is_outdated(answer, wanted_at):
                _LOG.info("the host of another version, or without a model, is replaced")
                await self._end(self._process_id(answer), _LOG.info)
                self._folder.forget_host()  # we ended it, so it did not crash
            if await self._answers():
                return
            while (record := noted_end(self._folder)) is None or may_start(record, wanted_at):
                reaper = self._start(record)
                if await self._answers():
                    return
                await asyncio.to_thread(reaper.join, COLLECT_S)  # it logs how the host ended
        raise HostError(failure_sentence(self._folder, record))

    async def stop(self, report: Callable[[str], None]) -> bool:
        """End the host, and return whether one ran. Raises HostError."""
        answer = await probe(self._address)
        was_there = answer.kind != "absent" or self._folder.host_is_alive()
        if was_there:
            await self._end(self._process_id(answer), report)
        async with self._lock():
            if not self._folder.host_is_alive():
                self._folder.forget_host()
        return was_there

    def _is_outdated(self, answer: ProbeResult, wanted_at: float) -> bool:
        """Whether to replace the host that gave this answer."""
        record, status = self._folder.read_record(), answer.status
        has_crashed = record is not None and record.crashed == VERSION
        if status is None:
            is_older = record is not None and precedes(record.version, VERSION)
            return answer.code == "wrong_protocol" and is_older and not has_crashed
        if record is not None and status.state == "failed" and record.started_at < wanted_at:
            return True
        return precedes(status.version, VERSION) and is_idle(status) and not has_crashed

    async def _answers(self) -> bool:
        """Wait for a host, and return whether it answers before its process ends."""
        deadline = time.monotonic() + START_LIMIT_S
        while not _is_up(answer := await probe(self._address)):
            # Checked after the probe: a process gone by then cannot have begun to listen since.
            if answer.kind == "absent" and not self._folder.host_is_alive():
                return False
            if time.monotonic() > deadline:
                raise HostError(
                    f"the model's process has not answered for {START_LIMIT_S:.0f} s; `foregram "
                    "logs` may say why, `foregram stop` ends it"
                )
            await asyncio.sleep(POLL_S)
        return True

    def _start(self, former: HostRecord | None) -> threading.Thread:
        """Start a host, and return the thread that ends after it, if this process lives so long."""
        # Not in a thread: a cancelled caller would release the lock before the process exists.
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
                    cwd="/",  # relative paths must not resolve to files of a repository
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
        reaper = threading.Thread(target=note_signal, args=(self._folder, process), daemon=True)
        reaper.start()
        return reaper

    def _process_id(self, answer: ProbeResult) -> int | None:
        if answer.status:
            return answer.status.pid
        record = self._folder.read_record()
        return record.pid if record and self._folder.host_is_alive() else None

    async def _end(self, pid: int | None, report: Callable[[str], None]) -> None:
        is_refused = False  # as from another version
        with suppress(httpx2.HTTPError):
            async with self._address.client() as client:
                is_refused = (await client.post("/v1/stop")).is_client_error
        if (pid is None or not is_refused) and await self._is_gone(pid):
            return
        if pid is None:
            raise HostError(f"what listens on {self._address.endpoint} does not end")
        host = f"the completion host (process {pid})"
        for ending in (signal.SIGTERM, signal.SIGKILL):
            report(f"{host} still runs: sending it {ending.name}")
            with suppress(ProcessLookupError):
                os.kill(pid, ending)
            if await self._is_gone(pid):
                return
        raise HostError(f"{host} on {self._address.endpoint} does not end")

    async def _is_gone(self, pid: int | None) -> bool:
        """Whether the process ends in time; another editor may have started a successor."""
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


def is_idle(status: Status) -> bool:
    """Whether the host may be replaced without disturbing its clients."""
    is_busy = status.num_running or status.num_waiting or status.state in ("loading", "stopping")
    return not is_busy and (status.num_clients == 0 or status.idle_s >= IDLE_S)


def precedes(version: str, other: str) -> bool:
    """Whether a version is older than another; False if either is not a valid version."""
    from packaging.version import InvalidVersion, Version

    with suppress(InvalidVersion):
        return Version(version) < Version(other)
    return False


def version_sentence(status: Status, *, is_remote: bool) -> str:
    """Say how the host's version differs from ours; empty if it does not."""
    if precedes(status.version, VERSION):
        local = "the next editor that starts while it is idle replaces it"
        what = "update it where it runs" if is_remote else local
        return f"it is of version {status.version}, and this is {VERSION}: {what}"
    if precedes(VERSION, status.version):
        return f"it is of version {status.version}, newer than this one, {VERSION}"
    return ""


def _is_up(answer: ProbeResult) -> bool:
    if answer.kind == "refused":
        raise HostError(answer.reason)
    if answer.kind == "still":
        raise HostError(f"{answer.reason}; `foregram stop` ends it")
    return answer.status is not None and answer.status.state != "stopping"
