"""numba's `njit`. A damaged file in its cache on disk is compiled anew."""

import hashlib
import pickle
from functools import partial
from typing import Any

from numba import njit
from numba.core import caching

__all__ = ["inner_njit", "njit"]
# For functions that compiled code alone calls: a way in from Python doubles the time of compiling.
inner_njit = partial(njit, no_cpython_wrapper=True, no_cfunc_wrapper=True)
_SUM_BYTES = 16  # 128 bits against chance damage, not against an attacker


class _CheckedFiles(caching.IndexDataCacheFile):  # type: ignore[misc]  # numba has no types
    """The cache files of one function. A checksum precedes its code, as a flipped bit there would run."""

    def _load_index(self) -> dict[Any, str]:
        try:
            return dict(super()._load_index())
        except Exception:  # noqa: BLE001 - pickle has an error for each kind of damage
            return {}

    def _save_data(self, name: str, data: object) -> None:
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(_sum(content) + content)

    def _load_data(self, name: str) -> Any:  # noqa: ANN401 - what numba has kept
        with open(self._data_path(name), "rb") as file:  # noqa: PTH123 - its paths are strings
            known, content = file.read(_SUM_BYTES), file.read()
        if known != _sum(content):
            raise OSError("damaged")  # as where the file is gone: numba compiles anew
        return pickle.loads(content)  # noqa: S301 - code that this user's own compiler has written


def _sum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_SUM_BYTES).digest()


caching.IndexDataCacheFile = _CheckedFiles
