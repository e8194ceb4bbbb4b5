"""The file that a URI names."""

from functools import lru_cache
from pathlib import Path

from pygls import uris

_MOST_KEPT = 2_048


@lru_cache(maxsize=_MOST_KEPT)
def file_path(uri: str) -> Path | None:
    """Where an editor's file is on this machine; None where the URI names none."""
    try:
        name = uris.to_fs_path(uri)
    except ValueError:  # brackets that hold no address
        return None
    return Path(name) if name else None
