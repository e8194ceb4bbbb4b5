"""Keeps an index in step with its folder, by processes that fill it one after the other."""

import asyncio
import logging
import math
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Set
from contextlib import suppress
from pathlib import Path

import msgspec

from lsp_server.privacy.ignore_files import IGNORE_FILES
from lsp_server.repository.filling import changed_paths
from lsp_server.repository.indexer import IndexJob, IndexReport
from lsp_server.repository.source_files import SourceFiles, is_never_indexed

_LOG = logging.getLogger(__name__)
_LEAST_WAIT_S = 0.5  # before changes are followed: a checkout touches many files at once
_MOST_WAIT_S = 30.0  # while changes go on, as of a build
_MOST_HEARD = 20_000  # changes that are kept to be judged
_MOST_PATHS = 500  # files to read again; more are a new look at all
_MOST_FAILED = 2  # jobs in a row that are tried again
_LOOK_S = 180.0  # between looks at all files where nobody says which of them change
_LOOK_SHARE = 0.01  # of the time, that these may take


class Upkeep:
    """Works in the background until `close`; `report` hears of each look at all files.

    `job` names folder and index; who shares a `turn` has one process at a time. Its methods belong
    to the event loop's thread.
    """

    def __init__(
        self,
        job: IndexJob,
        report: Callable[[IndexReport | None], None],
        turn: asyncio.Lock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.problem = ""  # why the last job was not done
        self._job = job
        self._report = report
        self._turn = turn
        self._sleep = sleep
        self._files = SourceFiles(Path(job.folder), allowed=job.allowed, globs=job.globs)
        self._wait_s = _LEAST_WAIT_S
        self._has_heard = False  # since the last wait began
        self._is_begun = False
        self._is_due = True  # a look at all files
        self._is_damaged = False
        self._num_failed = 0  # jobs in a row
        self._changed: set[str] = set()
        self._next_look = math.inf  # by the monotonic clock: not before that; not while one goes on
        self._is_closed = False
        self._work: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Do what there is to do, unless that is under way."""
        if not self._is_closed and (self._work is None or self._work.done()):
            self._work = asyncio.ensure_future(self._run())

    def changed(self, paths: Iterable[str]) -> None:
        """These files of the folder changed, came or went."""
        self.hear({path for path in paths if not is_never_indexed(path)})

    def hear(self, changed: Set[str]) -> None:
        """These did, and may be indexed."""
        if not changed:
            return
        self._changed |= changed
        is_storm = len(self._changed) > _MOST_HEARD
        if is_storm or any(path.endswith(IGNORE_FILES) for path in changed):
            self._is_due = True
        if self._is_due:
            self._changed.clear()
        self._has_heard = True
        self.begin()

    def look(self) -> None:
        """Look at all files, unless that was done lately: where no editor says which of them change."""
        if time.monotonic() >= self._next_look:
            self._is_due = True
            self.begin()

    def make_anew(self) -> None:
        """A question found the index damaged."""
        self._is_damaged = self._is_due = True
        self.begin()

    async def done(self) -> None:
        """Wait until there is nothing to do."""
        while self._work is not None and not self._work.done():
            await asyncio.wait([self._work])

    def close(self) -> None:
        """End what is under way, and begin nothing; what it has written stays."""
        self._is_closed = True
        if self._work is not None:
            self._work.cancel()

    async def _run(self) -> None:
        while self._is_due or self._changed:
            if self._is_begun:  # the first look is waited for
                self._has_heard = False
                await self._sleep(self._wait_s)
                longer_s = min(2 * self._wait_s, _MOST_WAIT_S)
                self._wait_s = longer_s if self._has_heard else _LEAST_WAIT_S
            self._is_begun = True
            await self._follow()

    async def _follow(self) -> None:
        """Have what is there to do done, by one process if there is any."""
        is_damaged, self._is_damaged = self._is_damaged, False
        paths = await self._paths()
        if paths is not None and not paths:
            return
        async with self._turn:
            began, former = time.monotonic(), self.problem
            try:
                job = msgspec.structs.replace(self._job, paths=paths, is_damaged=is_damaged)
                self._note(await self._do(job))
            finally:
                if paths is None:
                    self._next_look = _after_look(began, time.monotonic())
                if paths is None or self.problem != former:
                    self._report(None)
        self._num_failed = self._num_failed + 1 if self.problem else 0
        # What a job left undone, a look at all files finds; one that never ends well stops.
        self._is_due = self._is_due or 0 < self._num_failed <= _MOST_FAILED

    async def _paths(self) -> tuple[str, ...] | None:
        """The files to read again, in the order of their names; None: a look at all."""
        is_due, changed = self._is_due, self._changed
        self._is_due, self._changed = False, set()
        if is_due:
            self._next_look = math.inf
            return None
        index = Path(self._job.index)
        found = await asyncio.to_thread(
            changed_paths, self._files, index, sorted(changed), _MOST_PATHS
        )
        return None if found is None else tuple(found)

    async def _do(self, job: IndexJob) -> str:
        """Have a process do the job; why that failed, or ""."""
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "lsp_server.repository.indexer"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",  # what a repository holds must not be found by a relative path
            )
        except OSError as error:
            return f"no process can be started: {error}"
        try:
            return await self._followed(process, job)
        finally:
            with suppress(ProcessLookupError):
                process.kill()

    async def _followed(self, process: asyncio.subprocess.Process, job: IndexJob) -> str:
        """Give a process its job, and hear it to its end."""
        if process.stdin is None or process.stdout is None:
            return "the indexer has no pipes"
        process.stdin.write(msgspec.json.encode(job) + b"\n")
        problem = ""
        async for line in process.stdout:
            report = msgspec.json.decode(line, type=IndexReport)
            problem = problem or report.problem
            self._hear(report)
        status = await process.wait()
        return problem or (f"the indexer ended with status {status}" if status else "")

    def _hear(self, report: IndexReport) -> None:
        if report.total:
            self._report(report)
        if report.num_beyond:
            _LOG.warning("%s: %s", self._job.folder, report.note)

    def _note(self, problem: str) -> None:
        """Keep what is wrong, and log it once, however many jobs it befalls."""
        if problem and problem != self.problem:
            _LOG.warning("the repository is not indexed: %s", problem)
        self.problem = problem


def _after_look(began: float, ended: float) -> float:
    """When all files may be looked at again, on the clock by which that began and ended."""
    return ended + max(_LOOK_S, (ended - began) / _LOOK_SHARE)
