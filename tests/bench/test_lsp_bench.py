"""The host that `python -m tests.bench lsp` measures, and the environment to find it."""

import argparse

import pytest

from lsp_server.settings import Settings
from tests.bench import lsp_bench
from tests.bench.lsp_bench import LspFigures
from tests.bench.lsp_bench import bench as bench_lsp
from tests.bench.simulated.load.load_figures import Waits


@pytest.fixture
def measured(monkeypatch, tmp_path):
    seen, nothing = [], Waits(0.0, 0.0, 0.0)

    async def measure(environ):
        seen.append(environ)
        return LspFigures(0.0, 0.0, nothing, 0, nothing, nothing, 0, 0, 0)

    async def stop(settings):
        assert settings.host_url is None, "it is not ours"

    monkeypatch.setattr(lsp_bench, "measure_lsp", measure)
    monkeypatch.setattr(lsp_bench, "stop_host", stop)

    def bench(model=None, **settings):
        chosen = Settings(cache_folder=tmp_path, runtime_folder=tmp_path / "run", **settings)
        bench_lsp(argparse.Namespace(model=model, json=True), chosen)
        return seen[-1]

    return bench


def test_a_host_of_its_own_runs_in_a_folder_of_its_own(measured, tmp_path):
    assert measured()["FOREGRAM_RUNTIME"] != str(tmp_path / "run")


def test_the_host_of_a_url_is_asked_with_the_token_that_lies_in_the_users_folder(
    measured, tmp_path
):
    environ = measured(host_url="http://127.0.0.1:8012")
    assert environ["FOREGRAM_RUNTIME"] == str(tmp_path / "run")
