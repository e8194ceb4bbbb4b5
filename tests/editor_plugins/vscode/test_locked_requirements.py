"""What the VS Code extension installs is pinned by hash, and fits what we declare."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOLDER = Path("editor_plugins/vscode/requirements")
ALL, GPU = "locked.txt", "locked-gpu.txt"
PROJECT = tomllib.loads(Path("pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
DECLARED = {
    ALL: [*PROJECT["dependencies"], *EXTRAS["offline-model"]],
    GPU: EXTRAS["gpu"],
}
PLATFORMS = [
    {"sys_platform": system, "platform_machine": machine, "python_full_version": f"{python}.0"}
    | {"python_version": python, "os_name": "posix", "extra": ""}
    for system, machine in (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))
    for python in ("3.11", "3.12", "3.13", "3.14")
]
FILES = pytest.mark.parametrize("name", [ALL, GPU])


@dataclass(frozen=True)
class Locked:
    """A package at one version, for the platforms that its marker names."""

    requirement: Requirement
    hashes: int

    @property
    def name(self):
        return canonicalize_name(self.requirement.name)

    @property
    def version(self):
        (pinned,) = self.requirement.specifier
        assert pinned.operator == "=="
        return pinned.version

    def is_for(self, platform):
        marker = self.requirement.marker
        return marker is None or marker.evaluate(platform)


def entries(name):
    text = re.sub(r"^#.*\n", "", (FOLDER / name).read_text(), flags=re.M).replace("\\\n", "")
    lines = [line.split("--hash=sha256:") for line in text.splitlines()]
    return [Locked(Requirement(pinned), len(hashes)) for pinned, *hashes in lines]


@FILES
def test_every_entry_is_one_version_with_hashes(name):
    assert entries(name)
    for one in entries(name):
        assert one.version
        assert one.hashes, one.name
        assert one.requirement.url is None


@FILES
@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_declared_range_is_covered_on_every_platform(name, platform):
    found = {one.name: one for one in entries(name) if one.is_for(platform)}
    for declared in map(Requirement, DECLARED[name]):
        if declared.marker is None or declared.marker.evaluate(platform):
            one = found[canonicalize_name(declared.name)]
            assert declared.specifier.contains(one.version, prereleases=True), (
                f"{declared}: make lock"
            )


@pytest.mark.parametrize("platform", PLATFORMS)
def test_no_package_is_locked_twice(platform):
    names = [one.name for name in (ALL, GPU) for one in entries(name) if one.is_for(platform)]
    assert len(set(names)) == len(names)


def test_without_a_gpu_nothing_of_torch_and_cuda_is_installed():
    of_gpus = re.compile(r"(cuda|nvidia|torch|transformers|triton)\b")
    assert not [one.name for one in entries(ALL) if of_gpus.match(one.name)]


def test_it_is_the_torch_that_the_makefile_asks_for():
    (torch,) = [one for one in entries(GPU) if one.name == "torch"]
    assert re.findall(r"torch==([\d.]+)", Path("Makefile").read_text()) == [torch.version]


@FILES
def test_no_registry_is_named(name):
    text = (FOLDER / name).read_text()
    assert "://" not in text
    assert "index" not in text
