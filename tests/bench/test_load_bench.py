"""`python -m tests.bench load`: the host it takes, its refusals, and its output."""

import json
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.errors import ConfigurationError, InputError
from engine.host.protocol import PROTOCOL_VERSION, Status
from lsp_server.host.client import ProbeResult
from lsp_server.settings import Settings
from tests.bench import load_bench
from tests.bench.__main__ import build_parser
from tests.bench.simulated.load.crowd import CrowdRun
from tests.bench.simulated.load.host_requests import HostRequest

READY = Status(PROTOCOL_VERSION, "1", "ready", 1, 1.0, model="tiny", device="cpu", dtype="int8")
OTHER_TOKENS = "ada:aaaaaaaaaa:aaaaaaaaa\n# on leave\n\nbob:bbbbbbbbbbbbbbbbbbbb\n"


@pytest.fixture
def bench(monkeypatch, tmp_path):
    crowds, hosts = [], []

    class Crowd:
        def __init__(self, addresses, metrics, settings, traces, seed, active):
            self.addresses, self.metrics, self.settings = addresses, metrics, settings
            self.traces, self.seed, self.active = traces, seed, active
            crowds.append(self)

        async def type_for(self, seconds):
            one = HostRequest(0.0, is_ahead=False, outcome="answered", first_text_s=0.1)
            return CrowdRun(seconds, [[one] for _ in self.addresses], [0.0], [100.0], self.active)

    @asynccontextmanager
    async def own_host(folder, options, address):
        hosts.append((options, address.token, sorted(path.name for path in folder.iterdir())))
        yield

    async def probe(_address):
        return ProbeResult("status", READY)

    monkeypatch.setattr(load_bench, "Crowd", Crowd)
    monkeypatch.setattr(load_bench, "own_host", own_host)
    monkeypatch.setattr(load_bench, "probe", probe)

    def run(*options, **settings):
        words = ["load", *map(str, options)]
        chosen = Settings(cache_folder=tmp_path, runtime_folder=tmp_path / "run", **settings)
        assert load_bench.bench(build_parser().parse_args(words), chosen) == 0
        return crowds, hosts

    return run


def test_people_type_before_the_host_at_an_address(bench, capsys):
    options = ["http://127.0.0.1:9", "--people", "1,3", "--duration", "2", "--seed", "5", "--json"]
    crowds, hosts = bench(*options, token="t" * 20)
    assert hosts == []
    assert [len(crowd.addresses) for crowd in crowds] == [1, 3]
    assert {(one.url, one.token) for crowd in crowds for one in crowd.addresses} == {
        ("http://127.0.0.1:9", "t" * 20)
    }
    assert (crowds[0].seed, crowds[0].active) == (5, 0.25)
    assert [run["people"] for run in json.loads(capsys.readouterr().out)["runs"]] == [1, 3]


def test_each_person_has_the_token_of_a_line(bench, tmp_path):
    file = tmp_path / "tokens"
    file.write_text(OTHER_TOKENS)
    crowds, hosts = bench("--local", "--people", "2", "--tokens", file)
    assert [one.token for one in crowds[0].addresses] == ["aaaaaaaaaa:aaaaaaaaa", "b" * 20]
    [(options, token, _)] = hosts
    assert options[:2] == ["--token-file", str(file)]
    assert token[0] == "a"


def test_a_tiny_model_is_made_for_the_occasion_and_a_local_host_has_the_settings(bench, tmp_path):
    crowds, hosts = bench("--tiny", "--people", "1")
    bench("--local", "--people", "1", model="1.5b")
    [(tiny, _, tiny_files), (local, _, local_files)] = hosts
    assert (Path(tiny[3]).name, tiny_files) == ("model", ["cache", "model", "tokens"])
    assert (local[3], local_files) == ("1.5b", ["cache", "tokens"])
    assert [one.settings.min_confidence for one in crowds] == [0.0, 0.5]
    assert (tmp_path / "models").is_dir()


@pytest.mark.parametrize("places", [(), ("http://127.0.0.1:9", "--tiny")])
def test_one_host_has_to_be_named(bench, places):
    with pytest.raises(ConfigurationError, match="either --local or --tiny"):
        bench(*places)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("# nobody\n", "no token of a person"),
        (f"ada:sha256:{'0' * 64}\n", "hashes"),
        ("ü\n", "cannot be read"),
    ],
)
def test_a_token_file_that_no_client_can_use_is_refused(bench, tmp_path, content, reason):
    file = tmp_path / "tokens"
    file.write_text(content)
    with pytest.raises(InputError, match=reason):
        bench("--tiny", "--tokens", file)


@pytest.mark.parametrize(
    "options", [("--people", "1,0"), ("--duration", "0"), ("--duration", "x"), ("--active", "2")]
)
def test_numbers_that_make_no_sense_are_refused(bench, options, capsys):
    with pytest.raises(SystemExit):
        bench("--tiny", *options)
    assert options[0] in capsys.readouterr().err
