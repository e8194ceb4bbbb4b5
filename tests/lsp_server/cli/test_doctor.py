"""`foregram doctor`: what it finds when all is well, and what it advises when it is not."""

import argparse
import json
import re
import socketserver
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import msgspec
import pytest

from engine.host.protocol import PROTOCOL_VERSION, Failed, Problem, Status
from engine.request import Chunk, Cost, Done, FinishReason
from lsp_server.cli import command_line as cli
from lsp_server.cli import doctor, gpu_check, host_checks
from lsp_server.cli.doctor import show_doctor
from lsp_server.settings import load_settings
from tests.support.stub_host import Handler, stub_host

READY = Status(PROTOCOL_VERSION, "0.1.0", "ready", 1, 2.0, model="tiny", dtype="int8", device="cpu")
DONE = Done("pass", FinishReason.END_TOKEN, Cost(3, 1, 3, 30, 0, 20.0, 30.0, {}, queue_ms=1.0))
LOCAL = ("python", "settings", "torch", "processor", "device", "model", "cache", "repository")


class Host(Handler):
    """The stub within the test's own process: it completes, and is in the state it is put in."""

    status: ClassVar = READY
    events: ClassVar = (Chunk("pass"), DONE)
    refusal: ClassVar[tuple[int, Problem] | None] = None
    asked: ClassVar[Any]

    def do_GET(self):  # noqa: N802 - as http.server names it
        if self.refusal:
            self._answer(*self.refusal)
        elif self._is_known():
            self._answer(200, self.status)

    def do_POST(self):  # noqa: N802 - likewise
        if self.path == "/v1/complete":
            request = self.rfile.read(int(self.headers["content-length"]))
            type(self).asked = json.loads(request)
            self._answer(200, *self.events)
        else:
            self._answer(204)

    def _answer(self, status, *lines):
        content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words):
        pass


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(gpu_check, "NVIDIA_NODE", "/nowhere")
    monkeypatch.setattr(gpu_check, "may_have_gpu", lambda: False)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1e12))
    with stub_host() as stub:
        model = stub.folder.path / "model"
        model.mkdir()
        (model / "config.json").touch()
        yield replace(stub, environ={**stub.environ, "FOREGRAM_MODEL": str(model)})


@contextmanager
def running(stub, **attributes):
    handler = type("Running", (Host,), {"token": stub.folder.token()} | attributes)
    path = stub.folder.socket_path
    with socketserver.ThreadingUnixStreamServer(str(path), handler) as server:
        path.chmod(0o600)
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield handler
        server.shutdown()


def shown_doctor(environ, **options):
    loaded = load_settings(environ=environ)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "load_settings", lambda: loaded)
        return show_doctor(argparse.Namespace(**{"cards": False} | options), loaded.settings)


@pytest.fixture
def examined(stub, capsys):
    """What the doctor finds, by name; and its exit status. The token is in none of it."""

    def examine(*, start=False, **environ):
        status = shown_doctor({**stub.environ, **environ}, json=True, start=start)
        captured = capsys.readouterr()
        if stub.folder.token_path.exists():
            assert stub.folder.token_path.read_text().strip() not in captured.out + captured.err
        return {check["name"]: check for check in json.loads(captured.out)}, status

    return examine


def test_all_is_well(stub, examined):
    with running(stub) as host:
        found, status = examined()
    assert status == 0
    assert tuple(found) == (*LOCAL, "runtime folder", "token", "host", "latency")
    assert {check["state"] for check in found.values()} == {"ok"}
    assert found["host"]["what"] == f"ready: tiny int8 on cpu, protocol {PROTOCOL_VERSION}"
    assert found["latency"]["what"].endswith("prefill 20, decode 30")
    assert (len(host.asked["sync"][0]["lines"]), host.asked["stop"]["maxTokens"]) == (3, 8)


def test_without_a_host_there_is_a_hint_and_nothing_has_failed(stub, examined):
    found, status = examined()
    assert status == 0
    assert found["host"]["state"] == "warning"
    assert "foregram doctor --start" in found["host"]["advice"]
    assert "latency" not in found
    assert stub.starts == []


def test_a_torch_that_cannot_be_loaded_hides_no_model(stub, examined, monkeypatch):
    """It is loaded where there may be a GPU: `auto` is then judged by its name alone."""

    def broken(name):
        raise OSError("libtorch.so: cannot open shared object file")

    monkeypatch.setattr("engine.model.device.DeviceChoice.of", broken)
    found, _ = examined(FOREGRAM_MODEL="auto")
    assert found["model"]["state"] == "ok"


def test_a_host_is_started_only_when_asked_for(stub, examined, monkeypatch):
    monkeypatch.setattr(doctor, "LOAD_LIMIT_S", 0.0)
    monkeypatch.setattr("lsp_server.host.daemon.serve_command", lambda *_: stub.command())
    found, status = examined(start=True)
    assert status == 0
    assert len(stub.starts) == 1
    assert found["host"]["what"].startswith("loading")


def test_a_host_that_cannot_be_started_is_a_failure_with_its_last_words(
    stub, examined, monkeypatch
):
    monkeypatch.setattr("lsp_server.host.daemon.serve_command", lambda *_: stub.command("--crash"))
    found, status = examined(start=True)
    assert status == 1
    assert "the stub has no model" in found["host"]["what"]
    assert found["host"]["advice"] == "`foregram logs` says more"


@pytest.mark.parametrize(
    ("host", "what", "advice"),
    [
        ({"token": "another"}, "does not carry this host's token", "foregram stop"),
        (
            {"refusal": (426, Problem("wrong_protocol", "this host speaks protocol 5, not 4"))},
            "speaks protocol 5, not 4",
            "a host of this version",
        ),
        (
            {"status": msgspec.structs.replace(READY, protocol=5)},
            "speaks protocol 5, not 4",
            "a host of this version",
        ),
        (
            {
                "status": msgspec.structs.replace(
                    READY,
                    state="failed",
                    problem=Problem("model_not_found", "no model is called '9b'"),
                )
            },
            "no model is called '9b'",
            "foregram stop",
        ),
    ],
    ids=["token", "refusal", "protocol", "model"],
)
def test_a_host_that_does_not_serve_says_why_and_what_to_do(stub, examined, host, what, advice):
    with running(stub, **host):
        found, status = examined()
    assert status == 1
    assert what in found["host"]["what"]
    assert advice in found["host"]["advice"]
    assert "latency" not in found


def test_a_slow_completion_is_a_warning(stub, examined, monkeypatch):
    monkeypatch.setattr(host_checks, "SLOW_MS", 0.0)
    with running(stub):
        found, status = examined()
    assert (status, found["latency"]["state"]) == (0, "warning")
    assert found["latency"]["what"].endswith(" ms for 3 tokens: waiting 1, prefill 20, decode 30")


@pytest.mark.parametrize("events", [[Failed("out_of_memory", "no memory")], [Chunk("pas")]])
def test_a_probe_without_an_end_is_a_failure(stub, examined, events):
    with running(stub, events=events):
        found, status = examined()
    assert status == 1
    assert "a completion of three lines failed: " in found["latency"]["what"]


def test_a_runtime_folder_of_others_is_named_with_the_command_that_helps(stub, examined):
    stub.folder.path.chmod(0o755)
    found, status = examined()
    assert status == 1
    assert found["runtime folder"]["advice"] == f"run: chmod 700 {stub.folder.path}"
    assert found["host"]["state"] == "failed"


def test_a_host_url_is_examined_instead_of_what_is_local(stub, examined):
    found, status = examined(FOREGRAM_HOST_URL="http://127.0.0.1:9")
    assert status == 1
    names = ("python", "settings", "cache", "repository", "runtime folder", "token", "host")
    assert tuple(found) == names
    assert found["host"]["state"] == "failed"
    assert "host_url" in found["host"]["advice"]


def test_people_get_lines_and_the_command_goes_on_with_wrong_settings(stub, monkeypatch, capsys):
    for name, value in {**stub.environ, "FOREGRAM_SEEED": "1"}.items():
        monkeypatch.setenv(name, value)
    assert cli.main(["doctor"]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "\nfailed   settings: environment: unknown setting FOREGRAM_SEEED" in captured.out
    assert "\nwarning  host: no completion host listens on " in captured.out


def test_what_fits_which_card_is_a_table_with_what_auto_takes(stub, capsys):
    assert shown_doctor(stub.environ, json=False, start=False, cards=True) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(
        "    model held as    weights  buffers    cache          room for     floor\n"
    )
    sizes = re.findall(r"^(\d+) GB, as an ", shown, re.M)
    assert sizes == ["8", "12", "16", "24", "48", "80", "140"]
    assert re.search(r"^  \* 7b    fp8 +\d+\.\d GB +\d\.\d GB .* tokens +\d+\.\d ms$", shown, re.M)
    assert len(re.findall(r"^  \* ", shown, re.M)) == 7
    assert "No step takes less" in shown
    assert shown_doctor(stub.environ, json=True, start=False, cards=True) == 0
    card = json.loads(capsys.readouterr().out)[0]
    assert card["picked"] in card["fits"]


@pytest.mark.parametrize(("as_json", "start"), [(True, "[]\n"), (False, "which models fit needs")])
def test_without_torch_there_is_no_table_of_cards(stub, monkeypatch, capsys, as_json, start):
    monkeypatch.setitem(sys.modules, "engine.model.gpu.fit", None)
    assert shown_doctor(stub.environ, json=as_json, start=False, cards=True) == 1
    assert capsys.readouterr().out.startswith(start)


def test_on_a_terminal_there_is_a_table_with_what_to_do(stub, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    shown_doctor(stub.environ, json=False, start=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "ok python" in shown
    assert "so does `foregram doctor --start`" in shown
