"""The process that fills an index: `python -P -m lsp_server.repository.indexer`, one job each.

It never holds the language server's GIL, and its end frees its memory. It reads its job as a line
of JSON, prints progress line by line, and ends when its output is closed.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from lsp_server.repository.definitions import definitions
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.source_text import is_generated, is_minified, windows
from lsp_server.repository.store import Stamp, Store, StoreError, remove_store

# Limits for a folder; of a larger one, the newest files are indexed.
MAX_FILES = 50_000
MAX_TOTAL_BYTES = 500_000_000  # the index is about as large
_BATCH_FILES = 100  # files written in one transaction
_NICE = 10  # the default of the command `nice`: an editor's own work goes first
_OTHERS_S = 600.0  # seconds to wait for another process that fills the same index
_MOST_AGE_S = 30 * 24 * 3600.0  # seconds since an index was last filled, after which it is removed
_MOST_BYTES = 2_000_000_000  # bytes of all indexes together: four of the largest


class IndexJob(msgspec.Struct, frozen=True):
    """A job: look at all files of a folder, or only at `paths`."""

    folder: str
    index: str
    allowed: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    paths: tuple[str, ...] | None = None
    is_damaged: bool = False  # the index has to be rebuilt

    def files(self) -> SourceFiles:
        """Return the folder's files, for one thread."""
        return SourceFiles(Path(self.folder), allowed=self.allowed, globs=self.globs)


class IndexReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """Progress in files, or the problem that ended the job; at the end, the files left out."""

    done: int = 0
    total: int = 0
    problem: str = ""
    num_beyond: int = 0  # files beyond the limits of an index
    num_unread: int = 0  # files that were no text, held a secret, were gone, or slow to parse

    @property
    def note(self) -> str:
        """A note for people about the files that are left out."""
        notes = []
        if self.num_beyond:
            notes.append(f"{self.num_beyond:,} older files are more than an index holds")
        if self.num_unread:
            notes.append(f"{self.num_unread:,} could not be read")
        return "; ".join(notes)


OnReport = Callable[[IndexReport], None]


def main() -> None:
    """Do the job that stdin names."""
    os.nice(_NICE)

    def report(one: IndexReport) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(one) + b"\n")
        sys.stdout.buffer.flush()

    with suppress(BrokenPipeError):  # nobody reads the reports any more
        try:
            do_job(msgspec.json.decode(sys.stdin.buffer.readline(), type=IndexJob), report)
        except (StoreError, OSError, Timeout, msgspec.MsgspecError) as error:
            report(IndexReport(problem=str(error)))


def do_job(job: IndexJob, report: OnReport) -> None:
    """Fill the index; rebuild it if it is damaged. Raises StoreError."""
    index = Path(job.index)
    index.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if job.paths is None:
        remove_orphans(index)
    with FileLock(f"{index}.lock", timeout=_OTHERS_S, mode=0o600):
        if job.is_damaged:
            remove_store(index)
        try:
            _fill(job, report)
        except StoreError as error:
            if error.is_passing:
                raise
            remove_store(index)
            _fill(job, report)
        os.utime(index)  # marks it as in use


def _fill(job: IndexJob, report: OnReport) -> None:
    files = job.files()
    with closing(Store.build(Path(job.index), files.folder)) as store:
        if job.paths is None or not store.is_whole:
            scan(store, files, report)
        else:
            update(store, files, job.paths)


def scan(store: Store, files: SourceFiles, report: OnReport) -> None:
    """Look at all files of the folder; read those that are new or have changed."""
    found = [*files.walk()]
    chosen, held = newest(found), dict(store.stamps)
    changed = [(path, stamp) for path, stamp in chosen if held.pop(path, None) != stamp]
    with store.writing():
        store.keep_whole(is_whole=False)
        for gone in held:
            store.remove(gone)
    num_unread = 0
    for start in range(0, len(changed), _BATCH_FILES):
        report(IndexReport(start, len(changed)))
        num_unread += _read(store, files, changed[start : start + _BATCH_FILES])
    if held or num_unread:
        store.forget_removed()
    with store.writing():
        store.keep_whole(is_whole=True)
    num_beyond = len(found) - len(chosen)
    report(IndexReport(len(changed), len(changed), "", num_beyond, num_unread))


def update(store: Store, files: SourceFiles, paths: Iterable[str]) -> None:
    """Look at these files again; the files of a folder that is gone are removed."""
    stamps = {path: files.stamp(path) for path in paths if not files.is_entered(path)}
    gone = [path for path, stamp in stamps.items() if stamp is None]
    with store.writing():
        for path in gone:
            store.remove(path)
    num_unread = _read(store, files, ((path, stamp) for path, stamp in stamps.items() if stamp))
    if gone or num_unread:
        store.forget_removed()


def _read(store: Store, files: SourceFiles, changed: Iterable[tuple[str, Stamp]]) -> int:
    """Read files and count failures, stored as empty so that no start reads them again."""
    num_unread = 0
    with store.writing():
        for path, stamp in changed:
            text = files.text(path)
            readable = "" if text is None or is_minified(text) else text
            defined = definitions(readable, path)
            store.put(
                path, stamp, defined or (), () if is_generated(readable) else windows(readable)
            )
            num_unread += text is None or defined is None
    return num_unread


def newest(found: Iterable[tuple[str, Stamp]]) -> Sequence[tuple[str, Stamp]]:
    """Return the newest files within the limits of an index, the newest first."""
    files = sorted(found, key=lambda one: one[1].modified_ns, reverse=True)
    room, count = MAX_TOTAL_BYTES, 0
    for _, stamp in files[:MAX_FILES]:
        room -= stamp.size
        if room < 0:
            break
        count += 1
    return files[:count]


def remove_orphans(own: Path) -> None:
    """Remove other indexes that are old, beyond the limit or of a missing folder, unless in use."""
    room, outdated = _MOST_BYTES, time.time() - _MOST_AGE_S
    stats = []
    for path in own.parent.glob("*.sqlite"):
        with suppress(OSError):  # another process has removed it
            stats.append((path, path.stat()))
    for path, status in sorted(stats, key=lambda one: -one[1].st_mtime):
        room -= status.st_size
        is_unwanted = room < 0 or status.st_mtime < outdated or _is_of_no_folder(path)
        if is_unwanted and path != own:
            _remove(path)
            room += status.st_size


def _is_of_no_folder(path: Path) -> bool:
    """Whether an index's folder is gone; an unreadable index may be of another version."""
    with suppress(StoreError, OSError), closing(Store.open(path)) as store:
        return not store.folder.is_dir()
    return False


def _remove(path: Path) -> None:
    with suppress(Timeout, OSError), FileLock(f"{path}.lock", timeout=0, mode=0o600):
        remove_store(path)
        Path(f"{path}.lock").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
