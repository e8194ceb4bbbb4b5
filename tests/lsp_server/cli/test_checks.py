"""Checks of this machine, each against the fault that it is there for."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError

from engine.model.gpu.selfcheck.verdict import Verdict, VerdictFile
from kernels.cpu_forward import host_unit, processor
from kernels.cpu_forward.vector_unit import VECTOR_UNITS
from lsp_server.cli import checks
from lsp_server.cli.checks import (
    check_cache,
    check_kernels,
    check_processor,
    check_repository,
    check_settings,
    check_torch,
)
from lsp_server.model_choice import check_model, check_name, failure
from lsp_server.setting_layers import SettingsProblem
from lsp_server.settings import Settings


def gone(name):
    raise PackageNotFoundError(name)


def test_an_error_gives_its_advice_after_the_semicolon():
    check = failure("model", OSError("it is not there; install it"))
    assert (check.what, check.advice) == ("it is not there", "install it")
    assert failure("model", OSError("gone"), "look").advice == "look"


def test_torch_is_found_without_being_loaded():
    code = "import sys\nfrom lsp_server.cli.checks import check_torch\ncheck_torch()\n"
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_processor_is_named_by_what_multiplies(monkeypatch):
    assert host_unit().name in check_processor().what
    monkeypatch.setattr(processor, "host_unit", lambda: VECTOR_UNITS[-2])
    assert check_processor().state == "ok"  # of a Raspberry Pi 4


def test_a_processor_that_multiplies_number_by_number_is_a_warning(monkeypatch):
    monkeypatch.setattr(processor, "host_unit", lambda: VECTOR_UNITS[-1])
    check = check_processor()
    assert check.state == "warning"
    assert "completions take many times as long" in check.what


def test_a_numba_that_cannot_be_loaded_is_a_failure(monkeypatch):
    monkeypatch.setitem(sys.modules, "kernels.cpu_forward.processor", None)
    assert check_processor().state == "failed"


def test_a_missing_torch_is_a_failure(monkeypatch):
    monkeypatch.setattr(checks, "version", gone)
    assert check_torch().state == "failed"


def test_an_embedded_model_that_is_not_installed_names_the_command(monkeypatch):
    monkeypatch.setattr("engine.offline_parts.distribution", gone)
    check = check_model(None)
    assert check.state == "failed"
    assert check.advice == "run foregram models install offline"


def test_a_model_on_disk_is_looked_at(tmp_path):
    assert check_model(str(tmp_path)).what.endswith("holds no config.json")
    (tmp_path / "config.json").touch()
    assert check_model(str(tmp_path)).state == "ok"
    weights = tmp_path / "tiny.gguf"
    assert check_model(str(weights)).what == f"there is no {weights}"
    weights.touch()
    assert check_model(str(weights)).state == "ok"
    assert check_model(str(tmp_path / "config.json")).what.endswith("is not a .gguf file")


def test_a_folder_here_is_no_model_of_the_hub(tmp_path, monkeypatch):
    (tmp_path / "Qwen" / "Coder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert "looked up on the Hugging Face hub" in check_model("Qwen/Coder").what
    assert check_model("./Qwen/Coder").what.endswith("holds no config.json")
    assert not check_name("Qwen").ok


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


def test_a_folder_for_indexes_that_is_not_there_yet_is_fine_and_not_made(tmp_path):
    check = check_repository(Settings(cache_folder=tmp_path / "a", runtime_folder=tmp_path))
    assert (check.state, list(tmp_path.iterdir())) == ("ok", [])


def test_where_no_index_can_be_made_that_is_a_failure(tmp_path, monkeypatch):
    settings = Settings(cache_folder=tmp_path, runtime_folder=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(
            "lsp_server.repository.store._TABLES", "CREATE VIRTUAL TABLE a USING fts0 (b);"
        )
        assert "no such module" in check_repository(settings).what
    (tmp_path / "repository").touch()
    check = check_repository(settings)
    assert (check.state, "FOREGRAM_CACHE" in check.advice) == ("failed", True)
    off = Settings(cache_folder=tmp_path, runtime_folder=tmp_path, repository=("off",))
    assert check_repository(off).state == "ok"


def test_without_the_parsers_of_sources_that_is_what_the_check_says(tmp_path):
    code = f"""
import sys
from pathlib import Path
sys.modules["tree_sitter"] = None
from lsp_server.cli import doctor
from lsp_server.settings import Settings
settings = Settings(cache_folder=Path({str(tmp_path)!r}), runtime_folder=Path({str(tmp_path)!r}))
print(doctor.check_repository(settings))
"""
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "no file can be indexed: " in told.stdout
    assert "pip install foregram" in told.stdout


def test_a_full_disk_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "MIN_FREE_BYTES", 1e18)
    assert check_cache(tmp_path).what.endswith("GB free: too little to convert a model")


def test_each_wrong_setting_is_a_failure_by_its_name():
    problems = [SettingsProblem("environment", "A", "unknown setting A")]
    [check] = check_settings(problems)
    assert (check.state, check.what) == ("failed", "environment: unknown setting A")
    assert check_settings([])[0].state == "ok"


KEY = {"device": "NVIDIA H200"}


def check_of(folder, **found):
    VerdictFile.of(folder, KEY).write(Verdict(KEY, **found))
    [check] = check_kernels(folder)
    return check


def test_without_a_load_on_a_gpu_nothing_is_said(tmp_path):
    assert check_kernels(tmp_path) == []


def test_kernels_that_passed_are_well(tmp_path):
    check = check_of(tmp_path, runs="early")
    assert check.state == "ok"
    assert check.what.startswith(
        "on NVIDIA H200 the kernels passed their check; the text is the same"
    )


def test_a_form_that_is_not_used_is_a_warning_with_what_to_do(tmp_path):
    check = check_of(tmp_path, runs="pytorch", failed={"kernels": "it is wrong"}, slowdown=2.0)
    assert check.state == "warning"
    assert "a step takes 2.0 times as long: it is wrong" in check.what
    assert "foregram bench gpu --check" in check.advice


def test_a_text_that_may_differ_is_a_warning(tmp_path):
    assert check_of(tmp_path, runs="pytorch", is_text_equal=False).state == "warning"
