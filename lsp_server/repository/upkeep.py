"""Keeps an index in step with its folder, by processes that fill it one after the other."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from lsp_server.privacy.ignore_files import IGNORE_FILES
from lsp_server.repository.indexer import IndexJob, IndexReport

_LOG = logging.getLogger(__name__)
_SETTLE_S = 1.0  # for more changes: a checkout touches many files at once
_MOST_PATHS = 500  # more changes than these are a new look at all files
_MOST_FAILED = 2  # jobs in a row that are tried again


class Upkeep:
    """Works in the background until `close`; `report` hears of each look at all files.

    `job` names folder and index. Its methods belong to the event loop's thread.
    """

    def __init__(self, job: IndexJob, report: Callable[[IndexReport | None], None]) -> None:
        self._job = job
        self._report = report
        self._is_due = True  # a look at all files
        self._num_failed = 0  # jobs in a row
        self._changed: set[str] = set()
        self._work: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Do what there is to do, unless that is under way."""
        if self._work is None or self._work.done():
            self._work = asyncio.ensure_future(self._run())

    def changed(self, paths: Iterable[str]) -> None:
        """These files of the folder changed, came or went."""
        paths = set(paths)
        self._changed |= paths
        if any(path.rpartition("/")[2] in IGNORE_FILES for path in paths):
            self._is_due = True
        if paths:
            self.begin()

    def look_again(self) -> None:
        """Look at all files, as at the start."""
        self._is_due = True
        self.begin()

    async def done(self) -> None:
        """Wait until there is nothing to do."""
        while self._work is not None and not self._work.done():
            await asyncio.wait([self._work])

    def close(self) -> None:
        """End what is under way; what it has written stays."""
        if self._work is not None:
            self._work.cancel()

    async def _run(self) -> None:
        while self._is_due or self._changed:
            if not self._is_due:
                await asyncio.sleep(_SETTLE_S)
            is_whole = self._is_due or len(self._changed) > _MOST_PATHS
            paths = None if is_whole else tuple(sorted(self._changed))
            self._is_due, self._changed = False, set()
            try:
                is_done = await self._do(msgspec.structs.replace(self._job, paths=paths))
                self._num_failed = 0 if is_done else self._num_failed + 1
                # What a job left undone, a look at all files finds; one that never ends well stops.
                self._is_due = self._is_due or 0 < self._num_failed <= _MOST_FAILED
            except OSError as error:  # no process can be started
                _LOG.warning("the repository is not indexed: %s", error)
                return
            finally:
                if is_whole:
                    self._report(None)

    async def _do(self, job: IndexJob) -> bool:
        """Whether a process has done the job."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "lsp_server.repository.indexer"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",  # what a repository holds must not be found by a relative path
        )
        try:
            if process.stdin is None or process.stdout is None:
                return False
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            has_problem = False
            async for line in process.stdout:
                report = msgspec.json.decode(line, type=IndexReport)
                has_problem = has_problem or bool(report.problem)
                self._hear(report)
            status = await process.wait()
            if status:
                _LOG.warning("the repository's indexer ended with status %d", status)
            return status == 0 and not has_problem
        finally:
            with suppress(ProcessLookupError):
                process.kill()

    def _hear(self, report: IndexReport) -> None:
        if report.problem:
            _LOG.warning("the repository is not indexed: %s", report.problem)
        elif report.total:
            self._report(report)
