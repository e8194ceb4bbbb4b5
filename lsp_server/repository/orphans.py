"""Indexes that nobody asks any more: of folders that are gone, of former settings, of long ago."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from lsp_server.repository.store import Store, StoreError, remove_store

_MOST_AGE_S = 30 * 24 * 3600.0  # since an index was last filled
_MOST_BYTES = 2_000_000_000  # of all indexes


class _Kept(NamedTuple):
    """An index file. Those filled last come first in order."""

    age_s: float
    size: int
    path: Path


def remove_orphans(own: Path) -> None:
    """Remove what is gone, old or too much beside an index, and nothing that is being filled."""
    room = _MOST_BYTES
    for one in sorted(_kept(own.parent)):
        room -= one.size
        is_unwanted = room < 0 or one.age_s > _MOST_AGE_S or _is_of_no_folder(one.path)
        if is_unwanted and one.path != own:
            _remove(one.path)
            room += one.size


def _kept(indexes: Path) -> Iterator[_Kept]:
    for path in indexes.glob("*.sqlite"):
        with suppress(OSError):
            status = path.stat()
            yield _Kept(time.time() - status.st_mtime, status.st_size, path)


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
