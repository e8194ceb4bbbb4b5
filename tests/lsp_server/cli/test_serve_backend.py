"""`foregram serve` has its own model generate, or an engine of others."""

from contextlib import closing

import pytest

from engine.errors import ConfigurationError
from engine.host.upstream.upstream_engine import UpstreamEngine
from engine.progress import Progress
from lsp_server.cli.arguments import build_parser
from lsp_server.cli.serve import chosen_engine
from lsp_server.settings import load_settings
from tests.support.fake_upstream import fake_upstream


def backend(*options, model=None):
    environ = {"HOME": "/nowhere"} | ({"FOREGRAM_MODEL": model} if model else {})
    settings = load_settings(environ=environ).required()
    return chosen_engine(build_parser().parse_args(["serve", *options]), settings)


def test_the_hosts_own_model_is_what_options_or_settings_name():
    assert backend()[1] == "auto"
    assert backend(model="1.5b")[1] == "1.5b"
    assert backend("--model", "3b", model="1.5b")[1] == "3b"


def test_an_upstream_is_asked_with_its_token(tmp_path):
    path = tmp_path / "token"
    path.write_text("short\n")
    path.chmod(0o600)
    with fake_upstream() as upstream:
        options = ["--backend", "openai", "--upstream", upstream.url]
        load, model = backend(*options, "--upstream-token-file", str(path), model="1.5b")
        engine = load(Progress())
        assert isinstance(engine, UpstreamEngine)
        with closing(engine):
            assert engine.info.model == "Qwen/Qwen2.5-Coder-7B"
    assert model == ""  # the settings speak of the model that is loaded here
    assert {one["authorization"] for one in upstream.headers} == {"Bearer short"}


def test_options_that_do_not_go_together_are_sentences(tmp_path):
    with pytest.raises(ConfigurationError, match="name its address with --upstream"):
        backend("--backend", "openai")
    with pytest.raises(ConfigurationError, match="--device cuda does not go with"):
        backend("--backend", "openai", "--upstream", "http://127.0.0.1:8000", "--device", "cuda")
    with pytest.raises(ConfigurationError, match="--upstream goes with --backend openai"):
        backend("--upstream", "http://127.0.0.1:8000")
    path = tmp_path / "token"
    path.write_text("open to all")
    path.chmod(0o644)
    with pytest.raises(ConfigurationError, match="open to other users"):
        backend(
            *("--backend", "openai", "--upstream", "http://127.0.0.1:8000"),
            *("--upstream-token-file", str(path)),
        )
