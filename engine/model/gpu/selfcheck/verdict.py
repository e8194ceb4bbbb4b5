"""What a check found on a device, and the file that keeps it. Importing this loads no torch."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from engine.atomic_write import atomic_write

FOLDER = "gpu-checks"  # in the cache


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What became of one operation.

    `problem` says why its twin in PyTorch runs instead of the kernel, `variance` where what runs
    gives a row other bits in other company, `note` what could not be compared; each may be empty.
    `lost_ms` is what the twin costs a step of one row. `is_twin`: it runs in PyTorch, `problem` or
    not; `is_capturable`: it can be a part of one launch; not `is_tried`: the machine let nobody check
    it now, be it that memory or a compiler was missing.
    """

    operation: str
    problem: str = ""
    variance: str = ""
    note: str = ""
    lost_ms: float = 0.0
    is_twin: bool = False
    is_capturable: bool = True
    is_tried: bool = True

    @property
    def is_replaced(self) -> bool:
        """Whether the twin runs."""
        return bool(self.problem)

    @property
    def sentence(self) -> str:
        """What a user is told of it."""
        parts = []
        if self.is_replaced:
            cost = f", which costs {self.lost_ms:.2g} ms a step" if self.lost_ms > 0 else ""
            parts.append(f"{self.operation} runs by its formula in PyTorch{cost}: {self.problem}")
        if self.variance:
            parts.append(f"{self.operation} is not the same in any company: {self.variance}")
        return "; ".join(parts + ([f"{self.operation}: {self.note}"] if self.note else []))


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of all operations of a model on a device; `key` says which.

    `is_programmatic`: a kernel may start before the one ahead of it has ended; not `is_early_tried`:
    nobody has looked whether it may. `is_whole` is False while the check goes on: then the findings
    are of operations that took the device down.
    """

    key: dict[str, str]
    findings: tuple[Finding, ...] = ()
    is_programmatic: bool = False
    is_early_tried: bool = True
    is_whole: bool = True
    seconds: float = 0.0

    @property
    def replaced(self) -> tuple[str, ...]:
        """Operations that their twins stand in for."""
        return tuple(one.operation for one in self.findings if one.is_replaced)

    @property
    def is_lasting(self) -> bool:
        """Whether the next load need not check again."""
        return self.is_early_tried and all(one.is_tried for one in self.findings)

    @property
    def is_text_equal(self) -> bool:
        """Whether a row has the same bits in any company, and so a text with lookahead and without."""
        return not any(one.variance for one in self.findings)

    @property
    def is_capturable(self) -> bool:
        """Whether a step can be one launch; else it goes kernel by kernel."""
        return all(one.is_capturable for one in self.findings)

    @property
    def sentence(self) -> str:
        """What a user is told: what was replaced, what that costs, and what it means for the text."""
        told = [one.sentence for one in self.findings if one.sentence]
        if not self.replaced:
            told.insert(0, self._passed)
        elif not self.is_capturable:
            told.append("steps are launched kernel by kernel, as PyTorch's part cannot be captured")
        text = "is the same" if self.is_text_equal else "may differ in places"
        known = "" if self.is_lasting else ", as far as was checked: the next load checks again"
        return "; ".join([*told, f"the text {text} with lookahead and without{known}"])

    @property
    def _passed(self) -> str:
        if all(one.is_twin for one in self.findings):
            return "PyTorch runs all of it"
        are_all = all(one.is_tried for one in self.findings)
        kernels = "the kernels" if are_all else "those kernels that could be checked"
        return f"{kernels} passed their check"


def key_sum(key: dict[str, str]) -> str:
    """A name for what a verdict is about."""
    return hashlib.sha256(msgspec.json.encode(key, order="deterministic")).hexdigest()


class VerdictFile(msgspec.Struct, frozen=True):
    """Where the verdict on one device, model and version of the kernels is kept."""

    path: Path

    @classmethod
    def of(cls, cache_folder: Path, key: dict[str, str]) -> Self:
        """The file of a key."""
        return cls(cache_folder / FOLDER / f"{key_sum(key)[:16]}.json")

    def read(self, key: dict[str, str] | None = None) -> Verdict | None:
        """The verdict; None where there is none, or a damaged one, or one of another key."""
        try:
            told, _, body = self.path.read_bytes().partition(b"\n")
            if told.decode("ascii") != hashlib.sha256(body).hexdigest():
                return None
            verdict = msgspec.json.decode(body, type=Verdict)
        except (OSError, ValueError, msgspec.MsgspecError):
            return None
        return verdict if key is None or verdict.key == key else None

    def mark(self) -> None:
        """Let it be the latest, where it is kept at all."""
        with suppress(OSError):
            os.utime(self.path)

    def write(self, verdict: Verdict) -> None:
        """Keep a verdict; where that cannot be, the next load checks again."""
        body = msgspec.json.format(msgspec.json.encode(verdict), indent=1)
        try:
            with atomic_write(self.path) as file:
                file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        except OSError:
            return


def kept_verdicts(cache_folder: Path) -> list[Verdict]:
    """All that are whole, that of the latest load last."""
    paths = sorted((cache_folder / FOLDER).glob("*.json"), key=lambda path: path.stat().st_mtime)
    found = [VerdictFile(path).read() for path in paths]
    return [verdict for verdict in found if verdict is not None and verdict.is_whole]
