"""Checks of this machine, each against the fault that it is there for."""

import sys
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace

import pytest

from engine.installation import upgrade_command
from engine.model.gpu.selfcheck.verdict import Verdict, VerdictFile
from kernels.cpu_forward import host_unit, processor
from kernels.cpu_forward.vector_unit import VECTOR_UNITS
from lsp_server.cli import machine_checks
from lsp_server.cli.machine_checks import (
    check_cache,
    check_kernels,
    check_processor,
    check_repository,
    check_torch,
)
from lsp_server.cli.setup import check_choice
from lsp_server.model_choice import Check, check_model, check_name, failure
from lsp_server.settings import Settings


def gone(name):
    raise PackageNotFoundError(name)


@pytest.fixture
def settings(tmp_path):
    return Settings(cache_folder=tmp_path / "cache", runtime_folder=tmp_path)


def test_an_error_gives_its_advice_after_the_semicolon():
    check = failure("model", OSError("it is not there; install it"))
    assert (check.what, check.advice) == ("it is not there", "install it")
    assert failure("model", OSError("gone"), "look").advice == "look"


def test_the_processor_is_named_by_what_multiplies(settings, monkeypatch):
    assert host_unit().name in check_processor(settings).what
    monkeypatch.setattr(processor, "host_unit", lambda: VECTOR_UNITS[-2])
    assert check_processor(settings).state == "ok"  # of a Raspberry Pi 4
    monkeypatch.setattr(processor, "host_unit", lambda: VECTOR_UNITS[-1])
    check = check_processor(settings)
    assert check.state == "warning"
    assert "completions take many times as long" in check.what


def test_a_numba_that_cannot_be_loaded_is_a_failure(settings, monkeypatch):
    monkeypatch.setitem(sys.modules, "kernels.cpu_forward.processor", None)
    assert check_processor(settings).state == "failed"


def test_a_processor_needs_no_torch(settings, monkeypatch):
    assert check_torch(settings).what == version("torch")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert check_torch(settings) == Check("torch", "ok", "not installed: a GPU needs it")


def test_an_embedded_model_that_is_not_installed_names_the_command(monkeypatch, settings):
    monkeypatch.setattr("engine.offline_parts.distribution", gone)
    check = check_choice(settings)
    assert check.state == "failed"
    assert check.advice == "run `foregram models install offline`"


def test_a_folder_here_is_no_model_of_the_hub(tmp_path, monkeypatch):
    (tmp_path / "Qwen" / "Coder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert "looked up on the Hugging Face hub" in check_model("Qwen/Coder").what
    assert check_model("./Qwen/Coder").what.endswith("holds no config.json")
    assert not check_name("Qwen")["ok"]


def test_a_model_of_the_hub_shows_when_it_is_loaded():
    check = check_model("1.5b")
    assert (check.state, "--start" in check.advice) == ("warning", True)


@pytest.mark.parametrize("check", [check_cache, check_repository])
def test_a_folder_that_is_not_there_yet_is_fine_and_not_made(
    check, settings, tmp_path, monkeypatch
):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1e12))
    assert check(settings).state == "ok"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("check", [check_cache, check_repository])
def test_a_cache_folder_that_cannot_be_written_is_a_failure(check, settings):
    settings.cache_folder.touch()
    found = check(settings)
    assert found.state == "failed"
    assert "FOREGRAM_CACHE" in found.advice


def test_a_full_disk_is_a_warning(settings, monkeypatch):
    monkeypatch.setattr(machine_checks, "MIN_FREE_BYTES", 1e18)
    assert check_cache(settings).what.endswith("GB free: too little to convert a model")


def test_where_no_index_can_be_made_that_is_a_failure(settings, tmp_path, monkeypatch):
    broken = "CREATE VIRTUAL TABLE a USING fts0 (b);"
    monkeypatch.setattr("lsp_server.repository.store._TABLES", broken)
    assert "no such module" in check_repository(settings).what
    off = Settings(cache_folder=tmp_path, runtime_folder=tmp_path, repository=("off",))
    assert check_repository(off).state == "ok"


def test_without_the_parsers_of_sources_that_is_what_the_check_says(settings, monkeypatch):
    monkeypatch.setitem(sys.modules, "lsp_server.repository.folder_index", None)
    check = check_repository(settings)
    assert check.what.startswith("no file can be indexed: ")
    assert check.advice == f"run: {upgrade_command()}"


def check_of(settings, **found):
    key = {"device": "NVIDIA H200"}
    VerdictFile.of(settings.cache_folder, key).write(Verdict(key, **found))
    return check_kernels(settings)


def test_what_the_latest_load_on_a_gpu_found_is_told(settings):
    assert check_kernels(settings) is None
    check = check_of(settings, runs="early")
    assert check.state == "ok"
    assert check.what.startswith(
        "on NVIDIA H200 the kernels passed their check; the text is the same"
    )
    check = check_of(settings, runs="pytorch", failed={"kernels": "it is wrong"})
    assert check.state == "warning"
    assert "a step takes longer: it is wrong" in check.what
    assert "foregram bench gpu --check" in check.advice
