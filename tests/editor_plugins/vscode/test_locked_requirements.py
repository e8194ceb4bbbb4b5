"""What the VS Code extension installs is pinned by hash, and fits what we declare."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.locked_requirements import (
    ALL,
    CPU,
    CUDA,
    FOLDER,
    TORCH,
    Locked,
    read_locked,
    write_locked,
)

PROJECT = tomllib.loads(Path("pyproject.toml").read_text())["project"]
DECLARED = [
    Requirement(one)
    for one in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["offline-model"])
]
PLATFORMS = [
    {"sys_platform": system, "platform_machine": machine, "python_full_version": f"{python}.0"}
    | {"python_version": python, "os_name": "posix", "extra": ""}
    for system, machine in (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))
    for python in ("3.11", "3.12", "3.13", "3.14")
]


def entries(name):
    return read_locked((FOLDER / name).read_text())


def locked_for(platform):
    fitting = [
        one
        for one in (*entries(ALL), *entries(TORCH), *entries(CUDA))
        if one.requirement.marker is None or one.requirement.marker.evaluate(platform)
    ]
    assert len({one.name for one in fitting}) == len(fitting)
    return {one.name: one for one in fitting}


@pytest.mark.parametrize("name", [ALL, CPU, TORCH, CUDA])
def test_every_entry_is_one_version_with_hashes(name):
    assert entries(name)
    for one in entries(name):
        assert one.version
        assert one.hashes, one.name
        assert one.requirement.url is None


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_declared_range_is_covered_on_every_platform(platform):
    found = locked_for(platform)
    for declared in DECLARED:
        one = found[canonicalize_name(declared.name)]
        assert declared.specifier.contains(one.version, prereleases=True), f"{declared}: make lock"


def test_what_only_gpus_need_stands_apart():
    assert not [one.name for one in entries(ALL) if one.name.startswith(("nvidia", "torch"))]
    assert {"triton", "cuda-bindings"} <= {one.name for one in entries(CUDA)}
    for one in (*entries(TORCH), *entries(CUDA)):
        is_for_macs = one.name == "torch"
        marker = one.requirement.marker
        assert is_for_macs or not marker.evaluate({"sys_platform": "darwin"}), one.name


@pytest.mark.parametrize("platform", PLATFORMS)
def test_on_a_cpu_every_platform_has_one_torch_and_nothing_of_cuda(platform):
    (torch,) = [one for one in entries(CPU) if one.requirement.marker.evaluate(platform)]
    assert torch.name == "torch"
    assert torch.version.endswith("+cpu") is (platform["sys_platform"] == "linux")


def test_it_is_the_torch_that_the_makefile_asks_for():
    (torch,) = [one for one in entries(TORCH) if one.name == "torch"]
    assert re.findall(r"torch==([\d.]+)", Path("Makefile").read_text()) == [torch.version]


def test_no_registry_is_named():
    for name in (ALL, CPU, TORCH, CUDA):
        text = (FOLDER / name).read_text()
        assert "://" not in text
        assert "index" not in text


def test_what_is_written_is_read_again(tmp_path):
    marker = Marker("sys_platform == 'linux'")
    hashes = (f"sha256:{'0' * 64}", f"sha256:{'1' * 64}")
    linux = Requirement("triton==3.7.1")
    linux.marker = marker
    both = [Locked(Requirement("a==1"), hashes), Locked(linux, hashes[:1])]
    write_locked(tmp_path, both)
    read = [*read_locked((tmp_path / ALL).read_text()), *read_locked((tmp_path / CUDA).read_text())]
    assert read == both


def test_a_further_build_of_a_locked_version_is_accepted_by_its_hash(tmp_path):
    for version in ("1.0+cpu", "2.0+cpu"):
        (tmp_path / f"a-{version}-py3-none-any.whl").write_text(version)
    (locked,) = read_locked("a==1.0 --hash=sha256:" + "f" * 64)
    assert len(locked.with_wheels(tmp_path.iterdir()).hashes) == 2


def test_builds_for_cpus_stay_accepted_until_the_version_is_another(tmp_path):
    """Only who can reach their index has their files."""
    wheel = tmp_path / "torch-1.0+cpu-py3-none-any.whl"
    wheel.write_text("a build")
    (torch,) = read_locked("torch==1.0 --hash=sha256:" + "f" * 64)
    write_locked(tmp_path, [torch], [wheel])
    write_locked(tmp_path, [torch])
    kept, _on_mac = read_locked((tmp_path / CPU).read_text())
    assert (kept.version, len(kept.hashes)) == ("1.0+cpu", 1)
    (newer,) = read_locked("torch==2.0 --hash=sha256:" + "f" * 64)
    write_locked(tmp_path, [newer])
    assert [one.version for one in read_locked((tmp_path / CPU).read_text())] == ["2.0"]
