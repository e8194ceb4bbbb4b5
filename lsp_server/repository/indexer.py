"""The process that fills an index: `python -P -m lsp_server.repository.indexer`, one job each.

A process of its own, so that the language server's loop never waits for Python's lock, and has its
memory back. The job is one line of JSON on its input; what it says of its progress are lines on its
output, and it ends when its output is closed.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from lsp_server.repository.filling import Filling
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Store, StoreError, remove_store

_NICE = 10  # an editor's own work goes first
_OTHERS_S = 600.0  # that another process may fill the same index
_MOST_AGE_S = 30 * 24 * 3600.0  # since an index was last filled
_MOST_BYTES = 2_000_000_000  # of all indexes


class IndexJob(msgspec.Struct, frozen=True):
    """What to do: look at all of a folder's files, or at the files `paths` of it.

    `is_damaged`: the index was found to be, and is made anew.
    """

    folder: str
    index: str
    allowed: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    paths: tuple[str, ...] | None = None
    is_damaged: bool = False


class IndexReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far it is, in files; or why it ended. At the end: what was left out."""

    done: int = 0
    total: int = 0
    problem: str = ""
    num_beyond: int = 0
    num_unread: int = 0

    @property
    def note(self) -> str:
        """What a person should know of the files that are left out."""
        notes = []
        if self.num_beyond:
            notes.append(f"{self.num_beyond:,} older files are more than an index holds")
        if self.num_unread:
            notes.append(f"{self.num_unread:,} could not be read")
        return "; ".join(notes)


def do_job(job: IndexJob, report: Callable[[IndexReport], None]) -> None:
    """Fill the index as the job says; a damaged one is made anew. Raises StoreError."""
    index = Path(job.index)
    index.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if job.paths is None:
        remove_orphans(index)
    with FileLock(f"{index}.lock", timeout=_OTHERS_S, mode=0o600):
        if job.is_damaged:
            remove_store(index)
        try:
            _fill(job, index, report)
        except StoreError as error:
            if error.is_passing:
                raise
            remove_store(index)
            _fill(job, index, report)
        os.utime(index)  # it is in use


def _fill(job: IndexJob, index: Path, report: Callable[[IndexReport], None]) -> None:
    folder = Path(job.folder)
    store = Store.build(index, folder)
    try:
        filling = Filling(store, SourceFiles(folder, allowed=job.allowed, globs=job.globs))
        if job.paths is None:
            seen = filling.scan(lambda done, total: report(IndexReport(done, total)))
            num_read = seen.num_read
            report(IndexReport(num_read, num_read, "", seen.num_beyond, seen.num_unread))
        else:
            filling.update(job.paths)
    finally:
        store.close()


def main() -> None:
    """Do the job that the input names."""
    os.nice(_NICE)

    def report(one: IndexReport) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(one) + b"\n")
        sys.stdout.buffer.flush()

    with suppress(BrokenPipeError):  # nobody wants it any more
        try:
            do_job(msgspec.json.decode(sys.stdin.buffer.readline(), type=IndexJob), report)
        except (StoreError, OSError, Timeout, msgspec.MsgspecError) as error:
            report(IndexReport(problem=str(error)))


def remove_orphans(own: Path) -> None:
    """Remove what is gone, old or too much beside an index, and nothing that is being filled."""
    room = _MOST_BYTES
    for age_s, size, path in sorted(_kept(own.parent)):
        room -= size
        is_unwanted = room < 0 or age_s > _MOST_AGE_S or _is_of_no_folder(path)
        if is_unwanted and path != own:
            _remove(path)
            room += size


def _kept(indexes: Path) -> Iterator[tuple[float, int, Path]]:
    """Seconds since each index was filled, its bytes, and its file."""
    for path in indexes.glob("*.sqlite"):
        with suppress(OSError):
            status = path.stat()
            yield time.time() - status.st_mtime, status.st_size, path


def _is_of_no_folder(path: Path) -> bool:
    """Whether its folder is gone; one that cannot be read, as of another version, may be wanted."""
    with suppress(StoreError, OSError):
        store = Store.open(path)
        folder = store.folder
        store.close()
        return not folder.is_dir()
    return False


def _remove(path: Path) -> None:
    with suppress(Timeout, OSError), FileLock(f"{path}.lock", timeout=0, mode=0o600):
        remove_store(path)
        Path(f"{path}.lock").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
