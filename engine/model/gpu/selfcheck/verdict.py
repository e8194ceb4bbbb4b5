"""What a check found on a device, and the file that keeps it. Importing this loads no torch."""

import atexit
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, Self

import msgspec
from filelock import FileLock, Timeout

from engine.atomic_write import atomic_write
from engine.progress import Progress, shown

FOLDER = "gpu-checks"  # in the cache
_OTHERS_S = 900.0  # that another process may take to check the same model
# Kernels that start before the one ahead of them has ended, kernels that do not, and the way back.
Form = Literal["early", "kernels", "pytorch"]


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a model runs on a device; `key` says which.

    `runs` is None until that is known. `failed` are the forms that are not used, and why. `begun` is
    the form that is being checked: a file that says so at a start tells of one that ended the
    process. `note` is what could not be compared; not `is_lasting`: the next load checks again.
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
        """Whether nothing is to be reported."""
        return self.is_text_equal and not self.failed

    @property
    def sentence(self) -> str:
        """What runs and why, what that costs, and what it means for the text: for users."""
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
    """Where the verdict on one device, model and version of the kernels is kept."""

    path: Path

    @classmethod
    def of(cls, cache_folder: Path, key: dict[str, str]) -> Self:
        """The file of a key."""
        total = hashlib.sha256(msgspec.json.encode(key, order="deterministic")).hexdigest()
        return cls(cache_folder / FOLDER / f"{total[:16]}.json")

    def read(self, key: dict[str, str] | None = None) -> Verdict | None:
        """The verdict; None where there is none, or a damaged one, or one of another key."""
        try:
            total, _, body = self.path.read_bytes().partition(b"\n")
            if total.decode("ascii") != hashlib.sha256(body).hexdigest():
                return None
            verdict = msgspec.json.decode(body, type=Verdict)
        except (OSError, ValueError, msgspec.MsgspecError):
            return None
        return verdict if key is None or verdict.key == key else None

    def touch(self) -> None:
        """Let it be the latest, where it is kept at all."""
        with suppress(OSError):
            os.utime(self.path)

    def write(self, verdict: Verdict) -> None:
        """Keep a verdict; where that cannot be, the next load checks again."""
        body = msgspec.json.format(msgspec.json.encode(verdict), indent=1)
        with suppress(OSError), atomic_write(self.path) as file:
            file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)

    @contextmanager
    def locked(self, progress: Progress) -> Iterator[None]:
        """Let no other process check the same meanwhile, as far as the folder can be written."""
        lock = FileLock(self.path.with_suffix(".lock"), timeout=_OTHERS_S)
        with suppress(OSError, Timeout):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                with shown(progress, "waiting for another process that checks the kernels", 0):
                    lock.acquire()
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def begun(self, known: Verdict, form: Form) -> Iterator[None]:
        """While the block runs, say that a form is being checked.

        That stays where the process is ended from within, and not where it ends as processes do.
        """
        self.write(msgspec.structs.replace(known, begun=form))
        atexit.register(self.write, known)
        try:
            yield
        finally:
            atexit.unregister(self.write)
            self.write(known)


def kept_verdicts(cache_folder: Path) -> list[Verdict]:
    """Those of models that run, that of the latest load last."""
    paths = sorted((cache_folder / FOLDER).glob("*.json"), key=lambda path: path.stat().st_mtime)
    found = [VerdictFile(path).read() for path in paths]
    return [verdict for verdict in found if verdict is not None and verdict.runs is not None]
