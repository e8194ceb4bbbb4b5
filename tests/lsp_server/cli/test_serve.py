"""What `foregram serve` makes of options and settings, and what it leaves behind; no model runs."""

from types import SimpleNamespace

import pytest

from engine.errors import ConfigurationError
from engine.host.engine_thread import EngineThread
from engine.host.runtime import RuntimeFolder
from engine.model_names import title_of
from engine.scheduler import Scheduler
from lsp_server.cli import serve as module
from lsp_server.cli.arguments import build_parser
from lsp_server.settings import load_settings


class LoadedService:
    """Loads at once; its thread never works."""

    def __init__(self, load, model, limits):
        load(None)
        self.engine_thread = EngineThread(load, Scheduler())
        self.limits = limits


class EndingServer:
    """Ends at once, with `failure` if there is one."""

    failure: Exception | None = None
    folder: RuntimeFolder | None = None

    def __init__(self, service, options, folder):
        EndingServer.folder = folder

    async def serve(self):
        if self.failure:
            raise self.failure


@pytest.fixture
def served(monkeypatch, tmp_path):
    loaded = []

    def load(**options):
        loaded.append(options)
        return SimpleNamespace(info=SimpleNamespace(model=title_of(options["model"] or "offline")))

    monkeypatch.setattr(module, "CompletionService", LoadedService)
    monkeypatch.setattr(module, "HostServer", EndingServer)
    monkeypatch.setattr(module, "become_host", lambda: None)
    monkeypatch.setattr(module, "kept_for_good", lambda load: load)
    monkeypatch.setattr("engine.loader.load_engine", load)
    environ = {"HOME": str(tmp_path), "FOREGRAM_THREADS": "7", "FOREGRAM_CACHE": "/cache"}
    environ["FOREGRAM_RUNTIME"] = str(tmp_path / "run")
    settings = load_settings(environ=environ).required()

    def serve(*options):
        assert module.serve(build_parser().parse_args(["serve", *options]), settings) == 0
        return loaded[-1]

    return serve


def test_options_reach_the_engine_over_the_settings(served, tmp_path):
    given = ["--threads", "2", "--prompt-tokens", "900", "--cache-folder", str(tmp_path)]
    options = served(*given)
    assert (options["threads"], options["prompt_tokens"]) == (2, 900)
    assert options["cache_folder"] == tmp_path


def test_without_options_the_settings_count(served):
    options = served()
    assert (options["threads"], options["prompt_tokens"]) == (7, None)
    assert str(options["cache_folder"]) == "/cache"


def test_a_model_of_its_own_for_next_edits_is_loaded_second(served, monkeypatch):
    monkeypatch.setattr("engine.engine_pair.EnginePair", lambda *engines: engines)
    assert served("--model", "0.5b", "--edit-model", "sweep-1.5b")["model"] == "sweep-1.5b"
    assert served("--model", "0.5b")["model"] == "0.5b"


def test_a_model_that_is_to_propose_next_edits_too_is_loaded_once(served, monkeypatch):
    monkeypatch.setattr("engine.engine_pair.EnginePair", lambda *engines: pairs.append(engines))
    pairs: list[object] = []
    assert served("--edit-model", "offline")["model"] is None
    assert served("--model", "0.5b", "--edit-model", "0.5b")["model"] == "0.5b"
    assert len(pairs) == 2


def test_a_host_that_ends_well_empties_its_record(served, tmp_path):
    record = tmp_path / "host.json"
    served("--record", str(record))
    assert not record.exists()
    record.write_text("{}")
    served("--record", str(record))
    assert record.read_bytes() == b""
    served("--record", str(tmp_path / "other.json"))
    assert (folder := EndingServer.folder) is not None
    assert (folder.path, folder.record_path) == (tmp_path, tmp_path / "other.json")


def test_a_host_that_fails_leaves_its_record(served, tmp_path, monkeypatch):
    record = tmp_path / "host.json"
    record.write_text("{}")
    monkeypatch.setattr(EndingServer, "failure", ConfigurationError("no place to listen"))
    with pytest.raises(ConfigurationError):
        served("--record", str(record))
    assert record.read_text() == "{}"


def test_apis_may_be_named_one_by_one(served, monkeypatch):
    spoken = []
    monkeypatch.setattr(
        EndingServer, "__init__", lambda _, __, options, *___: spoken.append(options.apis)
    )
    served("--api", "openai", "--api", "tabby,mistral")
    served()
    served("--api", "none")
    assert spoken == ["openai,tabby,mistral", "openai", "none"]


@pytest.mark.parametrize("other", [("--port", "0"), ("--port", "9999"), ("--host", "0.0.0.0")])
def test_a_socket_goes_without_a_port(served, tmp_path, other):
    with pytest.raises(ConfigurationError, match="goes without"):
        served("--socket", str(tmp_path / "x.sock"), *other)
