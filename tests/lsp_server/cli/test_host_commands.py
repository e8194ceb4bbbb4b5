"""What a person sees of the host: status, stop, logs."""

import argparse
import asyncio
import io
import json
import sys
import time

import msgspec
import pytest

from engine.host.protocol import LoadProgress, Problem, Status
from engine.request import Cost
from lsp_server.cli import host_commands
from lsp_server.cli.host_commands import show_logs, show_status, stop
from lsp_server.host.address import HostError
from lsp_server.host.client import ProbeResult
from lsp_server.host.daemon import ensure_host

STATUS = Status(
    *(1, "0.1.0", "ready", 42, 3661.5),
    model="0.5b",
    pool_tokens=1234,
    kv_bytes=1_000_000,
    mapped_bytes=600_000_000,
    memory_mb=900.0,
)


@pytest.fixture
def running(stub):
    asyncio.run(ensure_host(stub.settings, stub.command()))
    return stub


def words(**options):
    defaults = {"json": False, "lines": 50, "follow": False, "force": False}
    return argparse.Namespace(**defaults | options)


def shown_status(status, stub, monkeypatch, capsys, **settings):
    tells(status, monkeypatch)
    assert show_status(words(), msgspec.structs.replace(stub.settings, **settings)) == 0
    return capsys.readouterr().out


def tells(status, monkeypatch):
    async def host_status(_settings):
        return ProbeResult("status", status)

    monkeypatch.setattr(host_commands, "host_status", host_status)


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        (
            {},
            [
                "ready",
                "0.5b",
                "42, up 1:01:01",
                "1,234 tokens",
                "900 MB (mapped weights and programs 600, keys and values 1, rest 299)",
            ],
        ),
        (
            {"device": "cuda:0", "place": "GeForce RTX 2080, by PyTorch: it has 7.5"},
            ["device cuda:0, GeForce RTX 2080, by PyTorch: it has 7.5"],
        ),
        (
            {"last_prompt": Cost(8, 8, 8, 812, 790, 1.0, 1.0, {}, 301, ("", ""), num_open=3)},
            ["812 tokens, 790 of them cached; 301 from 2 of 3 other open files"],
        ),
        (
            {"state": "loading", "progress": LoadProgress("converting the model", 1, 3)},
            ["loading: converting the model, 33 %"],
        ),
        (
            {"state": "failed", "problem": Problem("model_not_found", "no model [9b]")},
            ["failed: no model [9b]"],
        ),
        (
            {"model": "", "requested_model": "offline", "num_buffers": 1},
            ["Qwen2.5-Coder-0.5B-Instruct", "0, 1 buffer pool"],
        ),
    ],
    ids=["ready", "place", "prompt", "loading", "failed", "named"],
)
def test_the_status_is_a_table_for_people(stub, monkeypatch, capsys, changes, parts):
    status = msgspec.structs.replace(STATUS, **changes)
    shown = " ".join(shown_status(status, stub, monkeypatch, capsys).split())
    assert [part for part in parts if part not in shown] == []


@pytest.mark.parametrize("requested", ["Qwen/Qwen2.5-Coder-0.5B", "auto"])
@pytest.mark.parametrize(("wanted", "is_said"), [("1.5b", True), ("0.5b", False), (None, False)])
def test_the_status_says_where_the_settings_name_another_model(
    stub, monkeypatch, capsys, wanted, is_said, requested
):
    asked = {"requested_model": requested, "model": "Qwen/Qwen2.5-Coder-0.5B"}
    status = msgspec.structs.replace(STATUS, **asked)
    shown = shown_status(status, stub, monkeypatch, capsys, model=wanted)
    assert ("the settings name Qwen2.5-Coder-1.5B" in " ".join(shown.split())) is is_said


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_host_that_editors_use_is_not_stopped_by_a_script(running, monkeypatch):
    tells(msgspec.structs.replace(STATUS, num_clients=2), monkeypatch)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(HostError, match=r"^2 editors used .*--force"):
        stop(words(), running.settings)
    assert running.folder.host_is_alive()
    assert stop(words(force=True), running.settings) == 0
    assert not running.folder.host_is_alive()


@pytest.mark.parametrize(("answer", "is_stopped"), [("y", True), ("n", False), ("", False)])
def test_at_a_terminal_it_is_asked(running, monkeypatch, capsys, answer, is_stopped):
    tells(msgspec.structs.replace(STATUS, num_clients=1), monkeypatch)
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    assert stop(words(), running.settings) == (0 if is_stopped else 1)
    assert running.folder.host_is_alive() is not is_stopped
    assert "1 editor used this host" in capsys.readouterr().err


def test_the_status_is_one_object_for_programs(running, capsys):
    assert show_status(words(json=True), running.settings) == 0
    assert json.loads(capsys.readouterr().out)["pid"] == running.starts[0]


def test_without_a_host_the_status_is_a_reason(stub, capsys):
    assert show_status(words(), stub.settings) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("foregram: no completion host listens on ")
    assert show_status(words(json=True), stub.settings) == 1
    assert json.loads(capsys.readouterr().out)["state"] == "absent"


def test_stop_ends_the_host_and_says_whether_there_was_one(running, capsys):
    assert stop(words(), running.settings) == 0
    assert not running.folder.host_is_alive()
    assert stop(words(), running.settings) == 0
    assert capsys.readouterr().out == "stopped\nNo host is running\n"


def test_logs_prints_the_last_lines(stub, capsys):
    stub.folder.log.path.write_text("one\ntwo\nthree\n")
    assert show_logs(words(lines=2), stub.settings) == 0
    assert capsys.readouterr().out == "two\nthree\n"


def test_logs_follows_what_is_printed_and_goes_on_where_the_log_was_emptied(
    stub, capsys, monkeypatch
):
    path = stub.folder.log.path
    path.write_text("one\n")
    turns = iter(["one\ntwo, which is long\n", "three\n"])

    def turn(_seconds):
        if (text := next(turns, None)) is None:
            raise KeyboardInterrupt
        path.write_text(text)

    monkeypatch.setattr(time, "sleep", turn)
    with pytest.raises(KeyboardInterrupt):
        show_logs(words(follow=True), stub.settings)
    assert capsys.readouterr().out == "one\ntwo, which is long\nthree\n"


def test_the_log_of_a_remote_host_is_elsewhere(stub):
    settings = msgspec.structs.replace(stub.settings, host_url="https://gpu.example.org")
    with pytest.raises(HostError, match="is on that machine"):
        show_logs(words(), settings)


ESCAPE = "\x1b]0;title\x07\x9b2J"


def test_no_terminal_obeys_what_a_log_or_a_host_says(stub, monkeypatch, capsys):
    stub.folder.log.path.write_text(f"{ESCAPE}\n")
    show_logs(words(), stub.settings)
    problem = Problem("odd", ESCAPE)
    status = msgspec.structs.replace(STATUS, state="failed", problem=problem, model=ESCAPE)
    shown = capsys.readouterr().out + shown_status(status, stub, monkeypatch, capsys)

    async def host_status(_settings):
        return ProbeResult("refused", reason=ESCAPE)

    monkeypatch.setattr(host_commands, "host_status", host_status)
    show_status(words(), stub.settings)
    shown += capsys.readouterr().err
    assert shown.replace("\n", "").isprintable()
    assert "title" in shown
