"""The local completion host as a daemon: found or started, and stopped. It loads no torch.

Who starts a host holds the lock of the runtime folder, so ten windows that open at once get one
host. Waiting leaves the event loop free.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import httpx2
from filelock import FileLock, Timeout

from engine.host.protocol import PROTOCOL_VERSION
from engine.host.runtime import HostRecord, RuntimeFolder
from lsp_server.host_address import HostAddress, HostAnswer, HostError, ask, host_address
from lsp_server.settings import Settings

POLL_S = 0.05
START_LIMIT_S = 60.0  # until a host answers at all; it loads its model after that
STOP_LIMIT_S = 15.0  # a host drains for ten seconds; then the same again after SIGTERM
MAX_RESTARTS = 1
CRASH_WINDOW_S = 60.0  # a host that ends so soon after its start has crashed
LAST_WORDS = 3  # lines of the log in a sentence


async def ensure_host(settings: Settings, command: Sequence[str] | None = None) -> HostAddress:
    """A host to talk to: the remote one, or the local one, started where there is none.

    A local host answers, but its model may still be loading. One that crashes is started once
    more; then, and until its crash is a minute old, HostError tells the end of its log.
    """
    address = host_address(settings)
    if settings.host_url is None:
        await LocalHost(settings, command).ensure()
    return address


async def stop_host(settings: Settings) -> bool:
    """Stop the local host; whether there was one. Raises HostError where it does not end."""
    if settings.host_url is not None:
        raise HostError(f"the host at {settings.host_url} can only be stopped where it runs")
    return await LocalHost(settings).stop()


def read_log(settings: Settings, lines: int) -> list[str]:
    """The last lines that the local host printed."""
    return RuntimeFolder.open(settings.runtime_folder).read_log(lines)


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
        # Who lived for less than the idle time did not end because of it.
        self._crash_window_s = min(CRASH_WINDOW_S, settings.idle_exit_s or CRASH_WINDOW_S)

    async def ensure(self) -> None:
        """Return when the host answers. Raises HostError."""
        if _is_up(await ask(self._address)):
            return
        async with self._lock():
            if await self._answers():
                return
            for restarts in range(self._num_crashes(), MAX_RESTARTS + 1):
                self._start(restarts)
                if await self._answers():
                    return
        words = " | ".join(filter(str.strip, self._folder.read_log(LAST_WORDS)))
        raise HostError(
            f"the completion host ended soon after its start, twice: {words or 'it said nothing'} "
            f"(log: {self._folder.log_path}; `foregram stop` lets it be tried anew)"
        )

    async def stop(self) -> bool:
        """Ask the host to end, then tell it to; whether there was one. Raises HostError."""
        answer = await ask(self._address)
        was_there = answer.kind != "absent" or self._folder.host_is_alive()
        if was_there:
            await self._end(self._process_id(answer))
        async with self._lock():
            if not self._folder.host_is_alive():
                self._folder.forget_host()
        return was_there

    async def _answers(self) -> bool:
        """Whether a host answers before its process ends, if there is one at all."""
        deadline = time.monotonic() + START_LIMIT_S
        while not _is_up(answer := await ask(self._address)):
            # After the question: a process that is gone by now will not have listened since.
            if answer.kind == "absent" and not self._folder.host_is_alive():
                return False
            if time.monotonic() > deadline:
                raise HostError(
                    f"the completion host has not answered for {START_LIMIT_S:.0f} s: `foregram "
                    "logs` may say why, `foregram stop` ends it"
                )
            await asyncio.sleep(POLL_S)
        return True

    def _num_crashes(self) -> int:
        # A host that ended well, by a signal or for being idle, has emptied its record.
        record = self._folder.read_record()
        if record is None or time.time() - record.started > self._crash_window_s:
            return 0
        return record.restarts + 1

    def _start(self, restarts: int) -> None:
        # Not in a thread: who is cancelled would give the lock away while the process is started.
        self._folder.socket_path.unlink(missing_ok=True)
        self._folder.rotate_log()
        with self._folder.claimed_record() as claim, self._folder.log_path.open("ab") as log:
            try:
                process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # it outlives the editor, and its Ctrl-C
                    pass_fds=(claim,),
                )
            except OSError as error:
                reason = f"{self._command[0]}: {error.strerror}"
                raise HostError(f"the completion host cannot be started: {reason}") from error
            self._folder.write_record(
                HostRecord(
                    pid=process.pid,
                    protocol=PROTOCOL_VERSION,
                    socket=str(self._folder.socket_path),
                    started=time.time(),
                    restarts=restarts,
                )
            )
        # Collects the process when it ends, if this one lives so long.
        threading.Thread(target=process.wait, name="host reaper", daemon=True).start()

    def _process_id(self, answer: HostAnswer) -> int | None:
        if answer.status:
            return answer.status.pid
        record = self._folder.read_record()
        return record.pid if record and self._folder.host_is_alive() else None

    async def _end(self, pid: int | None) -> None:
        with suppress(httpx2.HTTPError):
            async with self._address.client() as client:
                await client.post("/v1/stop")
        if await self._is_gone():
            return
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            if await self._is_gone():
                return
        who = "what listens" if pid is None else f"the completion host (process {pid})"
        raise HostError(f"{who} on {self._address.place} does not end")

    async def _is_gone(self) -> bool:
        deadline = time.monotonic() + STOP_LIMIT_S
        while self._folder.host_is_alive() or (await ask(self._address)).kind != "absent":
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(POLL_S)
        return True

    @asynccontextmanager
    async def _lock(self) -> AsyncIterator[None]:
        lock = FileLock(self._folder.lock_path)
        while not _acquired(lock):
            await asyncio.sleep(POLL_S)
        try:
            yield
        finally:
            lock.release()


def _acquired(lock: FileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True


def _is_up(answer: HostAnswer) -> bool:
    if answer.kind == "refused":
        raise HostError(answer.reason)
    return answer.status is not None and answer.status.state != "stopping"
