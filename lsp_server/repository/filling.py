"""Brings an index in step with its folder: what changed is read again, what is gone is removed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from lsp_server.repository.definitions import Definition, UnparsableError, definitions
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.source_text import (
    chunks,
    family_of,
    is_generated,
    is_minified,
    language_of,
    words_in,
)
from lsp_server.repository.store import IndexedFile, Stamp, Store, StoreError

# Of a folder; where there is more, its newest files are indexed.
MAX_FILES = 50_000
MAX_TOTAL_BYTES = 500_000_000  # the index is about as large
_BATCH_BYTES = 2_000_000  # of files that are written together
_BATCH_FILES = 200

OnFilesRead = Callable[[int, int], None]  # files done, of how many


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a look at all files came to."""

    num_read: int
    num_beyond: int  # the bounds of an index
    num_unread: int  # of those read: no text, with a secret, gone by then, or beyond the parser


@dataclass(frozen=True, slots=True)
class Filling:
    """The index of a folder, and the files that it is filled from."""

    store: Store
    files: SourceFiles

    def scan(self, on_progress: OnFilesRead = lambda _done, _total: None) -> Scanned:
        """Look at all files of the folder; read those that are new or have changed."""
        found = list(self.files.walk())
        chosen, held = newest(found), dict(self.store.stamps)
        changed = [(path, stamp) for path, stamp in chosen if held.pop(path, None) != stamp]
        with self.store.writing():
            for gone in held:
                self.store.remove(gone)
        num_done = num_unread = 0
        for batch in _batches(changed):
            on_progress(num_done, len(changed))
            num_unread += self._read(batch)
            num_done += len(batch)
        with self.store.writing():
            self.store.note_whole()
        if held or num_unread:
            self.store.forget_removed()
        return Scanned(len(changed), len(found) - len(chosen), num_unread)

    def update(self, paths: Iterable[str]) -> None:
        """Look at these files again; a folder that is gone takes its files along.

        All files are looked at where the index was made anew since, or never finished.
        """
        if not self.store.is_whole:
            self.scan()
            return
        stamps = {
            path: self.files.stamp(path) for path in paths if not self.files.is_looked_into(path)
        }
        gone = [path for path, stamp in stamps.items() if stamp is None]
        with self.store.writing():
            for path in gone:
                self.store.remove(path)
                self.store.remove_below(path)
        num_unread = self._read(
            (path, stamp) for path, stamp in stamps.items() if stamp is not None
        )
        if gone or num_unread:
            self.store.forget_removed()

    def _read(self, changed: Iterable[tuple[str, Stamp]]) -> int:
        """Read files and hold what they say; return how many could not be read.

        One that turns out hidden or binary is known as empty: else it would be read at each start.
        """
        num_unread = 0
        with self.store.writing():
            for path, stamp in changed:
                one = _indexed(path, stamp, self.files.text(path))
                num_unread += not one.is_read
                self.store.put(one)
        return num_unread


def _batches(files: Iterable[tuple[str, Stamp]]) -> Iterator[Sequence[tuple[str, Stamp]]]:
    batch, num_bytes = list[tuple[str, Stamp]](), 0
    for path, stamp in files:
        batch.append((path, stamp))
        num_bytes += stamp.size
        if num_bytes >= _BATCH_BYTES or len(batch) == _BATCH_FILES:
            yield batch
            batch, num_bytes = [], 0
    if batch:
        yield batch


def _indexed(path: str, stamp: Stamp, text: str | None) -> IndexedFile:
    found, windows, is_read = list[Definition](), list[tuple[str, set[str]]](), text is not None
    if text is not None and not is_minified(text):
        try:
            found = definitions(text, language_of(path))
        except UnparsableError:
            is_read = False
        windows = [] if is_generated(text) else _windows(text.split("\n"))
    return IndexedFile(path, family_of(path), stamp, found, windows, is_read)


def _windows(lines: Sequence[str]) -> list[tuple[str, set[str]]]:
    texts = ["\n".join(lines[rows.start : rows.stop]) for rows in chunks(lines)]
    return [(one, words_in(one)) for one in texts]


def newest(found: Iterable[tuple[str, Stamp]]) -> Sequence[tuple[str, Stamp]]:
    """The newest files, as far as they are few and small enough, the newest first."""
    files = sorted(found, key=lambda one: one[1].modified_ns, reverse=True)
    room, count = MAX_TOTAL_BYTES, 0
    for _, stamp in files[:MAX_FILES]:
        room -= stamp.size
        if room < 0:
            break
        count += 1
    return files[:count]


def changed_paths(
    files: SourceFiles, index: Path, paths: Iterable[str], most: int
) -> Sequence[str] | None:
    """Of reported files, those to read again or to remove; None: all should be looked at.

    That is so where these are more than `most`, a folder came or was renamed, or the index is not
    there or not whole.
    """
    with suppress(StoreError):
        store = Store.open(index)
        try:
            return _changed_paths(files, store, paths, most) if store.is_whole else None
        finally:
            store.close()
    return None


def _changed_paths(
    files: SourceFiles, store: Store, paths: Iterable[str], most: int
) -> Sequence[str] | None:
    is_entered = lru_cache(None)(files.is_entered)
    found = []
    for path in paths:
        held = store.stamp(path)
        now = files.stamp(path) if is_entered(str(PurePosixPath(path).parent)) else None
        # Of a file that is gone or hidden, the index has nothing.
        if held != now or (now is None and store.holds_below(path)):
            found.append(path)
        if len(found) > most or files.is_looked_into(path):
            return None
    return found
