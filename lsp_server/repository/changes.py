"""Which of the files that an editor reports make an index another one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Store, StoreError


@dataclass(frozen=True, slots=True)
class Changes:
    """Compares files with what their index says of them."""

    files: SourceFiles
    index: Path

    def in_need(self, paths: Iterable[str], most: int) -> Sequence[str] | None:
        """Those to read again or to remove; None: all files should be looked at.

        That is so where these are more than `most`, a folder came or was renamed, or the index is
        not there or not whole.
        """
        try:
            store = Store.open(self.index)
        except StoreError:
            return None
        try:
            return self._in_need(store, paths, most) if store.is_whole else None
        except StoreError:
            return None
        finally:
            store.close()

    def _in_need(self, store: Store, paths: Iterable[str], most: int) -> Sequence[str] | None:
        is_entered = lru_cache(None)(self.files.is_entered)
        found = []
        for path in paths:
            if self._is_other(store, path, is_entered):
                found.append(path)
            if len(found) > most or self.files.is_looked_into(path):
                return None
        return found

    def _is_other(self, store: Store, path: str, is_entered: Callable[[str], bool]) -> bool:
        """Whether a file is not as the index has it; of one that is gone or hidden it has nothing."""
        held = store.stamp(path)
        above = str(PurePosixPath(path).parent)
        now = self.files.stamp(path) if is_entered(above) else None
        return held != now or (now is None and store.holds_below(path))
