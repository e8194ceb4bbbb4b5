"""What `auto` knows of a machine: what earlier hosts measured, and what is installed."""

import msgspec
import pytest

from engine import cpu_choice
from engine.cpu_choice import Installed, choose, known_machine
from engine.errors import ModelNotFoundError
from engine.learning import machine_key
from engine.model.cpu.fit import CPU_MODELS
from engine.offline_parts import OFFLINE_MODELS
from engine.progress import Progress

SMALL, MIDDLE = CPU_MODELS[:2]


@pytest.fixture(autouse=True)
def plenty(monkeypatch):
    monkeypatch.setattr(cpu_choice, "available_bytes", lambda: 6_000_000_000)


@pytest.fixture
def installed(monkeypatch):
    """Let these models be installed."""

    def install(*names):
        def find_parts(model):
            if model.alias not in names:
                raise ModelNotFoundError("it is missing")
            return [model]

        monkeypatch.setattr(cpu_choice, "find_parts", find_parts)
        monkeypatch.setattr(cpu_choice, "is_downloaded", lambda repository: False)

    return install


@pytest.fixture
def measured(monkeypatch):
    """Let steps be timed with this result; returns the timings."""
    timings = list[float]()

    def measure(ms_per_gb):
        def timed(threads, progress):
            timings.append(ms_per_gb)
            return ms_per_gb

        monkeypatch.setattr(cpu_choice, "measured_ms_per_gb", timed)
        return timings

    return measure


def sweep(folder, model, ms, threads=2):
    """Keep what a host has measured of a model: so many ms for a step of eight rows."""
    swept = {"one_ms": ms / 2, "many_ms": 2 * ms, "costs": {1: ms / 2, 8: ms}, "num_sweeps": 1}
    key = machine_key(OFFLINE_MODELS[model.name].fingerprint, "cpu", "int8", threads)
    (folder / "learned").mkdir(exist_ok=True)
    (folder / "learned" / f"{key}.json").write_bytes(msgspec.json.encode({"swept": swept}))


def test_nothing_is_timed_where_only_one_model_is_installed(tmp_path, installed, measured):
    installed("offline")
    timings = measured(1.0)
    assert choose(tmp_path, 2, Progress()).model == SMALL
    assert timings == []


def test_steps_are_timed_where_no_host_has_done_so(tmp_path, installed, measured):
    installed("offline", "offline-1.5b")
    timings = measured(1.0)
    assert choose(tmp_path, 2, Progress()).model == MIDDLE
    assert timings == [1.0]


def test_what_a_host_has_measured_of_a_smaller_model_speaks_for_a_larger_one(
    tmp_path, installed, measured
):
    installed("offline", "offline-1.5b")
    timings = measured(1e6)
    sweep(tmp_path, SMALL, 5.0)
    assert choose(tmp_path, 2, Progress()).model == MIDDLE
    assert timings == []


def test_a_slow_measurement_is_repeated_as_other_work_may_have_been_the_reason(
    tmp_path, installed, measured
):
    installed("offline", "offline-1.5b")
    sweep(tmp_path, MIDDLE, 1e5)
    timings = measured(1e6)
    assert choose(tmp_path, 2, Progress()).model == SMALL
    assert len(timings) == 1
    measured(1.0)
    assert choose(tmp_path, 2, Progress()).model == MIDDLE


def test_a_better_model_that_is_not_installed_is_hinted_at(tmp_path, installed):
    installed("offline")
    sweep(tmp_path, SMALL, 5.0)
    choice = choose(tmp_path, 2, Progress())
    assert choice.model == SMALL
    assert choice.hint.startswith(f"{MIDDLE.name} would save more keys here")


def test_other_threads_and_damaged_files_tell_nothing(tmp_path):
    sweep(tmp_path, SMALL, 5.0, threads=9)
    assert known_machine(tmp_path, 2).ms_per_gb == float("inf")
    assert known_machine(tmp_path, 9).ms_per_gb == pytest.approx(5.0 / (SMALL.weights / 1e9))
    for file in (tmp_path / "learned").iterdir():
        file.write_text("{")
    assert known_machine(tmp_path, 9).ms_per_gb == float("inf")


def test_a_model_of_the_hub_is_installed_once_it_is_downloaded(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert "7b" not in Installed()
    (tmp_path / "models--Qwen--Qwen2.5-Coder-7B").mkdir()
    assert "7b" not in Installed()
