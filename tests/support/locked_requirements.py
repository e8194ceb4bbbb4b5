"""The locked requirements that the VS Code extension installs from; `make lock` rewrites them.

uv resolves for every platform and Python at once and lists the hashes of all files of a version.
torch is separate. Its Linux builds for CPUs are on an index of their own, which uv does not read.
The others are built for CUDA and cannot be imported without the libraries that they link. Packages
that only a run on a GPU loads have a file of their own.

    uv pip compile ... | python -m tests.support.locked_requirements FOLDER [WHEEL ...]

A WHEEL is a further build of a locked version, such as one of torch for CPUs. Hashes of the version
that is already locked stay.
"""

import hashlib
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

FOLDER = Path("editor_plugins/vscode/requirements")
ALL, CPU, TORCH, CUDA = (f"locked{part}.txt" for part in ("", "-cpu", "-torch", "-cuda"))
_LINKED = re.compile(r"torch$|nvidia-(?!cusolver|nvtx)")  # loaded with CUDA's torch
_OF_GPUS = re.compile(r"(cuda|nvidia|triton)\b")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")
_HEAD = "# Written by `make lock` from pyproject.toml.\n"


@dataclass(frozen=True)
class Locked:
    """A package at one version, for the platforms that `requirement`'s marker names."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Self:
        """Read an entry of a requirements file, including its continued lines."""
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
    def file(self) -> str:
        if _LINKED.match(self.name):
            return TORCH
        return CUDA if _OF_GPUS.match(self.name) else ALL

    def with_wheels(self, wheels: Iterable[Path]) -> Self:
        """Return it with the hashes of those wheels that are builds of it."""
        hashes = set(self.hashes)
        for wheel in wheels:
            name, version, *_ = parse_wheel_filename(wheel.name)
            if name == self.name and version.public == self.version.partition("+")[0]:
                with wheel.open("rb") as file:
                    hashes.add(f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}")
        return replace(self, hashes=tuple(sorted(hashes)))

    def written(self) -> str:
        return " \\\n    ".join([str(self.requirement), *(f"--hash={one}" for one in self.hashes)])


def read_locked(text: str) -> list[Locked]:
    lines = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    return [Locked.read(entry) for entry in re.split(r"(?<!\\)\n", lines) if entry.strip()]


def for_cpus(torch: Locked, former: Sequence[Locked], wheels: Iterable[Path]) -> list[Locked]:
    """Return torch without CUDA: CPU builds on Linux, and on a Mac those of every index."""
    build = Requirement(f"torch=={torch.version}+cpu")
    build.marker = Marker("sys_platform == 'linux'")
    kept = [one for one in former if one.version == f"{torch.version}+cpu"]
    on_mac = Requirement(str(torch.requirement))
    on_mac.marker = Marker("sys_platform != 'linux'")
    on_linux = Locked(build, kept[0].hashes if kept else ()).with_wheels(wheels)
    return [one for one in (on_linux, Locked(on_mac, torch.hashes)) if one.hashes]


def write_locked(folder: Path, entries: Sequence[Locked], wheels: Iterable[Path] = ()) -> None:
    folder.mkdir(exist_ok=True)
    cpu = folder / CPU
    former = read_locked(cpu.read_text()) if cpu.exists() else []
    torch = [one for one in entries if one.name == "torch"]
    chosen = {name: [one for one in entries if one.file == name] for name in (ALL, TORCH, CUDA)}
    chosen[CPU] = [built for one in torch for built in for_cpus(one, former, wheels)]
    for name, listed in chosen.items():
        (folder / name).write_text(_HEAD + "".join(f"{one.written()}\n" for one in listed))


if __name__ == "__main__":
    write_locked(Path(sys.argv[1]), read_locked(sys.stdin.read()), [*map(Path, sys.argv[2:])])
