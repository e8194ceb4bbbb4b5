"""What suggestions saved by day: numbers alone, in one file that all language servers share."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from engine.atomic_write import atomic_write, read_kept

KEY = re.compile(r"\n[ \t]*|.")  # what one key types: an Enter brings the indentation with it
_WRITE_S = 1.0  # seconds from an accept until the file is written
_OTHERS_S = 1.0  # seconds that other servers may take to write it
_MOST_DAYS = 31


class Day(msgspec.Struct, frozen=True):
    """What suggestions saved in a day. Keystrokes: keys of the accepted texts, less one per accept."""

    keystrokes: int = 0
    accepted: int = 0  # suggestions, whole or in part
    offered: int = 0

    def __add__(self, other: "Day") -> "Day":
        return Day(*map(sum, zip(*map(msgspec.structs.astuple, (self, other)), strict=True)))

    @property
    def accepted_share(self) -> float | None:
        """The part of the offered suggestions that were accepted; None if there were none."""
        return self.accepted / self.offered if self.offered else None

    @property
    def sentence(self) -> str:
        """The day for people."""
        share = f" ({self.accepted_share:.0%})" if self.offered else ""
        taken = f"{self.accepted:,} of {self.offered:,} suggestions accepted{share}"
        return f"{self.keystrokes:,} keystrokes saved, {taken}"


Days = dict[str, Day]  # by date, the oldest first


def today() -> str:
    """Return the local date."""
    return time.strftime("%Y-%m-%d")


def saved_days(cache_folder: Path) -> Days:
    """Return the days that are known."""
    return read_kept(_file(cache_folder), Days) or {}


def reset(cache_folder: Path) -> None:
    """Forget all days. Raises OSError."""
    _file(cache_folder).unlink(missing_ok=True)


def add(cache_folder: Path, news: Days) -> None:
    """Add to the days that are known. Raises OSError, also if others hold the file too long."""
    from filelock import FileLock  # noqa: PLC0415 - no start waits for it

    file = _file(cache_folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock"), timeout=_OTHERS_S, mode=0o600):
        days = saved_days(cache_folder)
        days |= {date: days.get(date, Day()) + more for date, more in news.items()}
        latest = sorted(days)[-_MOST_DAYS:]
        with atomic_write(file) as written:
            written.write(msgspec.json.encode({date: days[date] for date in latest}))


class Savings:
    """Counts what one editor's suggestions save, and soon adds it to the file."""

    def __init__(self, cache_folder: Callable[[], Path]) -> None:
        self._cache_folder = cache_folder
        self._news: Days = {}
        self._offered = ""  # id of the suggestion that was offered last
        self._date = today()  # of its offer: an accept after midnight, too, counts there
        self._taken = "", 0  # id of the one that was accepted last, and up to where
        self._writing: asyncio.Task[None] | None = None

    def offered(self, completion_id: str) -> None:
        """Count a suggestion that the editor gets, once while it stands."""
        if completion_id != self._offered:
            self._offered, self._date = completion_id, today()
            self._count(Day(offered=1))

    def accepted(self, completion_id: str, text: str, begun: int) -> None:
        """Count an accept of a suggestion, whose `text` up to `begun` had been typed."""
        former, taken = self._taken
        is_first = completion_id != former
        if keys := len(KEY.findall(text, max(begun, 0 if is_first else taken))):
            self._taken = completion_id, len(text)
            self._count(Day(keystrokes=keys - 1, accepted=int(is_first)))

    async def close(self) -> None:
        """Write what is left when the editor leaves."""
        if self._writing is not None:
            self._writing.cancel()
        await self._write()

    async def _write(self) -> None:
        """Add what was counted to the file; what cannot be written is tried with the next."""
        news, self._news = self._news, {}
        try:
            if news:
                await asyncio.to_thread(add, self._cache_folder(), news)
        except OSError:
            for date, day in news.items():
                self._news[date] = day + self._news.get(date, Day())

    def _count(self, more: Day) -> None:
        self._news[self._date] = self._news.get(self._date, Day()) + more
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_soon())

    async def _write_soon(self) -> None:
        await asyncio.sleep(_WRITE_S)
        await self._write()


def _file(cache_folder: Path) -> Path:
    return cache_folder / "saved" / "days.json"
