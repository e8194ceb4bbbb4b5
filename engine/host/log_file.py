"""The log of a user's local host: for its user alone, and never long."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from engine.atomic_write import atomic_write

MAX_LOG_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class LogFile:
    """What a host prints, and the end of what it printed before that became too long."""

    path: Path

    @property
    def former_path(self) -> Path:
        """What the log was before it became too long."""
        return self.path.with_name(f"{self.path.name}.1")

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The log, to be appended to; for its user alone."""
        with open(self.path, "ab", opener=partial(os.open, mode=0o600)) as file:
            os.fchmod(file.fileno(), 0o600)  # an older version's may be readable
            yield file

    def rotate(self) -> None:
        """Copy a long log aside, over the previous one, and empty it.

        Its writers may go on: all append. So a host can do this to its own log.
        """
        with suppress(FileNotFoundError):
            if self.path.stat().st_size <= MAX_LOG_BYTES:
                return
            with self.path.open("rb") as log, atomic_write(self.former_path) as former:
                log.seek(-MAX_LOG_BYTES, os.SEEK_END)
                former.write(log.read(MAX_LOG_BYTES))
            os.truncate(self.path, 0)

    def read(self, lines: int) -> list[str]:
        """The last `lines` lines that the host printed."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, self.path.stat().st_size - MAX_LOG_BYTES))
                text = file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return []
        return text.splitlines()[-lines:] if lines > 0 else []
