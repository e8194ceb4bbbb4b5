"""The verdict of a check, and the file that keeps it. Importing this loads no torch."""

import atexit
import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal, Self

import msgspec
from filelock import FileLock, Timeout

from engine.atomic_write import atomic_write, read_kept
from engine.progress import Progress
from engine.shared_lock import shared_lock

FOLDER = "gpu-checks"  # subfolder of the cache
_OTHERS_S = 900.0  # seconds to wait for another check; a first load on an H200 takes 60
# Kernels that start before their predecessor ends, kernels that do not, and the fallback.
Form = Literal["early", "kernels", "pytorch"]


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a model runs on a device; `key` names both.

    `runs` is None until known. `failed` maps unused forms to reasons. `begun` is the form under
    check: if a file still names one at the next load, that form ended the process. `note` says what
    could not be compared. Unless `is_lasting`, the next load checks again.
    """

    key: dict[str, str]
    runs: Form | None = None
    failed: dict[Form, str] = {}
    begun: Form | None = None
    is_text_equal: bool = True
    note: str = ""
    is_lasting: bool = True

    @property
    def is_well(self) -> bool:
        """Whether there is nothing to report."""
        return self.is_text_equal and not self.failed

    @property
    def sentence(self) -> str:
        """Tell users what runs and why, what it costs, and whether the text stays the same."""
        text = "is the same" if self.is_text_equal else "may differ in places"
        parts = [self._what, self.note, f"the text {text} with lookahead and without"]
        if not self.is_lasting:
            parts.append("the next load checks again")
        return "; ".join(filter(None, parts))

    @property
    def _what(self) -> str:
        reason = self.failed.get("kernels", "")
        if self.runs == "pytorch":
            if not reason and self.is_lasting:
                return ""  # there are no kernels for this device
            what = "PyTorch runs the model in place of our kernels, and a step takes longer"
            return f"{what}: {reason}" if reason else what
        passed = (
            "the kernels passed their check" if self.is_lasting else "the kernels run unchecked"
        )
        late = self.failed.get("early")
        return (
            f"{passed}, but none starts early, which costs some speed: {late}" if late else passed
        )


class VerdictFile(msgspec.Struct, frozen=True):
    """The file of the verdict on one device, model and version of the kernels."""

    path: Path

    @classmethod
    def of(cls, cache_folder: Path, key: dict[str, str]) -> Self:
        """Return the file for a key."""
        total = hashlib.sha256(msgspec.json.encode(key, order="deterministic")).hexdigest()
        return cls(cache_folder / FOLDER / f"{total[:16]}.json")

    def read(self, key: dict[str, str] | None = None) -> Verdict | None:
        """Return the verdict, or None if it is missing, damaged or of another key."""
        verdict = read_kept(self.path, Verdict)
        return verdict if verdict is not None and key in (None, verdict.key) else None

    def touch(self) -> None:
        """Mark the file, if there is one, as the latest."""
        with suppress(OSError):
            os.utime(self.path)

    def write(self, verdict: Verdict) -> None:
        """Write a verdict. If that fails, the next load checks again."""
        with suppress(OSError), atomic_write(self.path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(verdict), indent=1))

    @contextmanager
    def locked(self, progress: Progress) -> Iterator[None]:
        """Keep other processes from checking the same meanwhile, if the folder is writable."""
        with ExitStack() as held:
            with suppress(OSError, Timeout):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                task = "waiting for another process that checks the kernels"
                lock = FileLock(self.path.with_suffix(".lock"), timeout=_OTHERS_S)
                held.enter_context(shared_lock(lock, task, progress))
            yield

    @contextmanager
    def begun(self, known: Verdict, form: Form) -> Iterator[None]:
        """Record in the file that a form is being checked while the block runs.

        The record survives a crash of the process, but not a regular exit.
        """
        self.write(msgspec.structs.replace(known, begun=form))
        atexit.register(self.write, known)
        try:
            yield
        finally:
            atexit.unregister(self.write)
            self.write(known)


def kept_verdicts(cache_folder: Path) -> list[Verdict]:
    """Return the verdicts of models that run, ordered by their latest load."""
    paths = sorted((cache_folder / FOLDER).glob("*.json"), key=lambda path: path.stat().st_mtime)
    found = [VerdictFile(path).read() for path in paths]
    return [verdict for verdict in found if verdict is not None and verdict.runs is not None]
