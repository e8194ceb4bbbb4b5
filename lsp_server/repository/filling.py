"""Brings an index in step with its folder: what changed is read again, what is gone is removed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lsp_server.repository.chunks import chunks
from lsp_server.repository.definitions import definitions
from lsp_server.repository.languages import family_of, language_of
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import IndexedFile, Stamp, Store
from lsp_server.repository.words import words_in

_FILES_AT_ONCE = 50  # that are written together

OnFilesRead = Callable[[int, int], None]  # files done, of how many


@dataclass(frozen=True, slots=True)
class Filling:
    """The index of a folder, and the files that it is filled from."""

    store: Store
    files: SourceFiles

    def scan(self, on_progress: OnFilesRead = lambda _done, _total: None) -> None:
        """Look at all files of the folder; read those that are new or have changed."""
        held = dict(self.store.stamps)
        changed = []
        for path, stamp in self.files.walk():
            if held.pop(path, None) != stamp:
                changed.append((path, stamp))
        with self.store.writing():
            for gone in held:
                self.store.remove(gone)
        for start in range(0, len(changed), _FILES_AT_ONCE):
            on_progress(start, len(changed))
            self._read(changed[start : start + _FILES_AT_ONCE])
        on_progress(len(changed), len(changed))

    def update(self, paths: Iterable[str]) -> None:
        """Look at these files again; a folder that is gone takes its files along."""
        stamps = {path: self.files.stamp(path) for path in paths}
        gone = [path for path, stamp in stamps.items() if stamp is None]
        with self.store.writing():
            for path in gone:
                self.store.remove(path)
                self.store.remove_below(path)
        self._read([(path, stamp) for path, stamp in stamps.items() if stamp is not None])

    def _read(self, changed: Iterable[tuple[str, Stamp]]) -> None:
        """Read files and hold what they say; one that turns out hidden or binary is known as empty.

        Else it would be read again at each start.
        """
        read = [_indexed(path, stamp, self.files.text(path) or "") for path, stamp in changed]
        with self.store.writing():
            for one in read:
                self.store.put(one)


def _indexed(path: str, stamp: Stamp, text: str) -> IndexedFile:
    lines = text.split("\n")
    texts = ["\n".join(lines[rows.start : rows.stop]) for rows in chunks(lines)]
    windows = [(one, words_in(one)) for one in texts]
    found = definitions(text, language_of(path)) if text else []
    return IndexedFile(path, family_of(path), stamp, found, windows)
