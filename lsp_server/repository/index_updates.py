"""Keeps an index up to date with its folder; one process after the other fills it."""

import asyncio
import logging
import math
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path, PurePosixPath

import msgspec

from lsp_server.documents.file_path import file_path
from lsp_server.privacy.work_trees import IGNORE_FILES
from lsp_server.repository.indexer import IndexJob, IndexReport
from lsp_server.repository.source_files import is_never_indexed
from lsp_server.repository.store import Store, StoreError

_LOG = logging.getLogger(__name__)
_LEAST_WAIT_S = 0.5  # seconds before a job for changes: a checkout touches many files at once
_MOST_WAIT_S = 30.0  # longest pause in seconds while changes go on, as in a build
_MOST_CHANGED = 100_000  # changes that may wait; beyond that, look at all files
_MOST_PATHS = 500  # files to read again; beyond that, look at all files
_MOST_FAILED = 2  # failed jobs in a row that are tried again
_LOOK_S = 180.0  # seconds between looks at all files, for editors that do not report changes
_LOOK_SHARE = 0.01  # share of the time that these looks may take
_JOB_SHARE = 0.1  # share of the time that jobs for changes may take


class IndexUpdates:
    """Updates in the background until `close`; calls `report` after each look at all files.

    Objects that share a `lock` run one process at a time. Call methods on the event loop's thread.
    """

    def __init__(
        self,
        job: IndexJob,
        report: Callable[[IndexReport], None],
        lock: asyncio.Lock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.problem = ""  # why the last job was not done
        self._job = job
        self._report = report
        self._lock = lock
        self._sleep = sleep
        self._files = job.files()
        self._is_due = True  # a look at all files
        self._is_damaged = False
        self._num_failed = 0  # jobs in a row
        self._changed: list[str] = []  # URIs of files that changed, came or went
        # Earliest begin of the next one, by the monotonic clock.
        self._next_job: float | None = None  # None before the first job, which begins at once
        self._next_look = math.inf  # infinite while a look is under way
        self._is_closed = False
        self._work: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start the worker if it is idle."""
        if not self._is_closed and (self._work is None or self._work.done()):
            self._work = asyncio.ensure_future(self._run())

    def changed(self, uris: Iterable[str]) -> None:
        """Note that these files changed, came or went."""
        self._changed += uris
        if self._is_due or len(self._changed) > _MOST_CHANGED:
            self._is_due = True
            self._changed.clear()
        self.begin()

    def look(self) -> None:
        """Look at all files, unless that was done lately; for editors that report no changes."""
        if time.monotonic() >= self._next_look:
            self._is_due = True
            self.begin()

    def rebuild(self) -> None:
        """Rebuild the index, which a question found damaged."""
        self._is_damaged = self._is_due = True
        self.begin()

    async def done(self) -> None:
        """Wait until there is nothing to do."""
        while self._work is not None and not self._work.done():
            await asyncio.wait([self._work])

    def close(self) -> None:
        """End the job under way and begin no other; its writes stay."""
        self._is_closed = True
        if self._work is not None:
            self._work.cancel()

    async def _run(self) -> None:
        while self._is_due or self._changed:
            if self._next_job is not None:
                wait_s = self._next_job - time.monotonic()
                await self._sleep(min(max(_LEAST_WAIT_S, wait_s), _MOST_WAIT_S))
            async with self._lock:
                began = time.monotonic()
                try:
                    await self._follow()
                finally:
                    ended = time.monotonic()
                    self._next_job = ended + (ended - began) / _JOB_SHARE

    async def _follow(self) -> None:
        """Do all that is due in one process, if anything is."""
        is_due, self._is_due = self._is_due, False
        is_damaged, self._is_damaged = self._is_damaged, False
        changed, self._changed = self._changed, []
        # A checkout may report tens of thousands of files: a thread goes through them.
        paths = None if is_due else await asyncio.to_thread(self._to_read, changed)
        if paths is None:
            self._next_look = math.inf
        elif not paths:
            return
        job = msgspec.structs.replace(self._job, paths=paths, is_damaged=is_damaged)
        began, former = time.monotonic(), self.problem
        try:
            self.problem = await self._do(job)
            if self.problem not in ("", former):  # logged once, however many jobs have it
                _LOG.warning("the repository is not indexed: %s", self.problem)
        finally:
            ended = time.monotonic()
            if paths is None:
                self._next_look = ended + max(_LOOK_S, (ended - began) / _LOOK_SHARE)
            if paths is None or self.problem != former:
                self._report(IndexReport())
        self._num_failed = self._num_failed + 1 if self.problem else 0
        # A look at all files finds what a failed job left; too many failures in a row end that.
        self._is_due = self._is_due or 0 < self._num_failed <= _MOST_FAILED

    def _to_read(self, uris: Sequence[str]) -> tuple[str, ...] | None:
        """Return the files to read again or remove, sorted; None for a look at all files."""
        folder = self._files.folder
        files = {file for uri in uris if (file := file_path(uri)) and file.is_relative_to(folder)}
        paths = {file.relative_to(folder).as_posix() for file in files}
        paths = {path for path in paths if not is_never_indexed(path)}
        if any(path.endswith(IGNORE_FILES) for path in paths):
            return None
        with suppress(StoreError), closing(Store.open(Path(self._job.index))) as store:
            return self._others(store, sorted(paths)) if store.is_whole else None
        return None

    def _others(self, store: Store, paths: Sequence[str]) -> tuple[str, ...] | None:
        """Return the files that differ from the index; None for a folder, or too many."""
        is_entered, found = cache(self._files.is_entered), []
        for path in paths:
            is_inside = is_entered(str(PurePosixPath(path).parent))
            now = self._files.stamp(path) if is_inside else None
            # The index should hold nothing of a file that is gone or hidden.
            if store.holds(path) if now is None else store.stamp(path) != now:
                found.append(path)
            if len(found) > _MOST_PATHS or (is_inside and is_entered(path)):
                return None
        return tuple(found)

    async def _do(self, job: IndexJob) -> str:
        """Do the job in a process; return why it failed, or ""."""
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "lsp_server.repository.indexer"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",  # no relative path may lead into a repository
            )
        except OSError as error:
            return f"no process can be started: {error}"
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - pipes
        problem = ""
        try:
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            async for line in process.stdout:
                report = msgspec.json.decode(line, type=IndexReport)
                problem = problem or report.problem
                self._on_report(report)
            status = await process.wait()
            return problem or (f"the indexer ended with status {status}" if status else "")
        finally:
            with suppress(ProcessLookupError):
                process.kill()

    def _on_report(self, report: IndexReport) -> None:
        if report.total:
            self._report(report)
        if report.num_beyond:
            _LOG.warning("%s: %s", self._job.folder, report.note)
