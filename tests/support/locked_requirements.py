"""The locked requirements that the VS Code extension installs from; `make lock` writes them anew.

uv resolves for every platform and Python at once and names the hashes of all files of a version.
What only CUDA builds of torch need stands in a file of its own: others are spared gigabytes.

    uv pip compile ... | python -m tests.support.locked_requirements FOLDER [WHEEL ...]

A WHEEL is a further build of a locked version, such as a CPU build of torch, that is to be accepted.
"""

import hashlib
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

FOLDER = Path("editor_plugins/vscode/requirements")
ALL, CUDA = "locked.txt", "locked-cuda.txt"
_OF_CUDA = re.compile(r"(cuda|nvidia|triton)\b")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")
_HEAD = "# Written by `make lock` from pyproject.toml.\n"


@dataclass(frozen=True)
class Locked:
    """A package at one version, for the platforms that `requirement`'s marker names."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Self:
        """An entry of a requirements file, its continued lines included."""
        line = text.replace("\\\n", " ")
        return cls(Requirement(line.partition(" --hash")[0]), tuple(_HASH.findall(line)))

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        (pinned,) = self.requirement.specifier
        assert pinned.operator == "=="
        return pinned.version

    @property
    def is_of_cuda(self) -> bool:
        return _OF_CUDA.match(self.name) is not None

    def with_wheels(self, wheels: Iterable[Path]) -> Self:
        """It, with the hashes of those wheels that are builds of it."""
        hashes = set(self.hashes)
        for wheel in wheels:
            name, version, *_ = parse_wheel_filename(wheel.name)
            if name == self.name and version.public == self.version:
                with wheel.open("rb") as file:
                    hashes.add(f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}")
        return replace(self, hashes=tuple(sorted(hashes)))

    def written(self) -> str:
        return " \\\n    ".join([str(self.requirement), *(f"--hash={one}" for one in self.hashes)])


def read_locked(text: str) -> list[Locked]:
    """All entries."""
    lines = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    return [Locked.read(entry) for entry in re.split(r"(?<!\\)\n", lines) if entry.strip()]


def write_locked(folder: Path, entries: Iterable[Locked]) -> None:
    """Both files."""
    folder.mkdir(exist_ok=True)
    for name, is_of_cuda in ((ALL, False), (CUDA, True)):
        chosen = [one.written() for one in entries if one.is_of_cuda is is_of_cuda]
        (folder / name).write_text(_HEAD + "".join(f"{one}\n" for one in chosen))


if __name__ == "__main__":
    wheels = [Path(name) for name in sys.argv[2:]]
    write_locked(
        Path(sys.argv[1]), [one.with_wheels(wheels) for one in read_locked(sys.stdin.read())]
    )
