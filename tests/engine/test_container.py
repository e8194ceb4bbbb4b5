"""Limits of control groups, as Docker, Kubernetes and systemd write them."""

import math

import pytest

from engine import container, memory
from engine.model.cpu.threads import default_threads

GIB = 2**30
V1_OPEN = 9223372036854771712


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Let this process be in these groups, with these files."""
    monkeypatch.setattr(container, "_ROOT", tmp_path / "cgroup")
    monkeypatch.setattr(container, "_GROUPS", tmp_path / "groups")

    def make(lines, files):
        (tmp_path / "groups").write_text(lines)
        for name, content in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{content}\n")

    return make


def test_a_container_sees_its_own_group_as_the_root(groups):
    stat = f"anon 1\ninactive_file {GIB}\nactive_file {GIB}"
    files = {"memory.max": 4 * GIB, "memory.current": 3 * GIB, "memory.stat": stat}
    groups("0::/\n", {**files, "cpu.max": "150000 100000"})
    assert container.memory_left() == 3 * GIB
    assert container.processors() == 1.5


def test_the_tightest_of_the_groups_above_decides(groups):
    files = {
        "user.slice/a.scope/memory.max": "max",
        "user.slice/a.scope/memory.current": 1,
        "user.slice/a.scope/cpu.max": "max 100000",
        "user.slice/memory.max": 2 * GIB,
        "user.slice/memory.current": GIB,
        "user.slice/cpu.max": "300000 100000",
    }
    groups("0::/user.slice/a.scope\n", files)
    assert container.memory_left() == GIB
    assert container.processors() == 3


@pytest.mark.parametrize("path", ["/docker/0123", "/"])
def test_the_first_version_has_a_tree_for_each_controller(groups, path):
    files = {
        "memory/memory.limit_in_bytes": 2 * GIB,
        "memory/memory.usage_in_bytes": GIB,
        "memory/memory.stat": f"active_file 0\ntotal_active_file {GIB // 2}",
        "cpu/cpu.cfs_quota_us": 200000,
        "cpu/cpu.cfs_period_us": 100000,
    }
    groups(f"5:cpu,cpuacct:{path}\n4:memory:{path}\n1:name=systemd:/\n0::/\n", files)
    assert container.memory_left() == 1.5 * GIB
    assert container.processors() == 2


def test_without_limits_all_of_the_machine_counts(groups):
    assert container.memory_left() == container.processors() == math.inf
    files = {"memory/memory.limit_in_bytes": V1_OPEN, "memory/memory.usage_in_bytes": GIB}
    groups("5:cpu:/\n4:memory:/\n", {**files, "cpu/cpu.cfs_quota_us": -1})
    assert container.memory_left() > 2**60
    assert container.processors() == math.inf
    assert 0 < memory.available_bytes() < 2**60


def test_the_choice_of_memory_and_threads_keeps_to_them(groups, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    files = {"memory.max": GIB, "memory.current": GIB // 2, "cpu.max": "50000 100000"}
    groups("0::/\n", files)
    assert memory.available_bytes() == GIB // 2
    assert default_threads() == 1
    groups("0::/\n", {"memory.current": 2 * GIB})
    assert memory.available_bytes() == 0
