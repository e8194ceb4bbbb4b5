"""`foregram setup`: the choice for this machine with its costs, and its installation after asking."""

import argparse
import io
from types import SimpleNamespace

import msgspec
import pytest

from engine.errors import CacheError, ModelNotFoundError
from engine.host.protocol import Status
from engine.model.cpu.fit import CpuMachine
from engine.model.device import DeviceChoice
from lsp_server.cli import command_line, setup
from lsp_server.host.client import ProbeResult
from lsp_server.model_choice import Check
from lsp_server.settings import load_settings

FAST = CpuMachine(6e9, 20.0)
CHOSEN = "offline-1.5b"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def settings(tmp_path):
    return msgspec.structs.replace(
        load_settings(environ={}).required(), cache_folder=tmp_path, device="cpu"
    )


@pytest.fixture
def installed(monkeypatch):
    """The models that are installed, which `setup` may add to; the machine is a fast one."""
    names = ["offline"]

    async def host_status(_settings):
        return ProbeResult("absent")

    monkeypatch.setenv("FOREGRAM_CONFIG", "/nowhere/foregram.toml")
    monkeypatch.setattr(setup, "host_status", host_status)
    monkeypatch.setattr(setup, "Installed", lambda: names)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1e12))
    monkeypatch.setattr(setup, "install", lambda name, _cache: names.append(name))
    monkeypatch.setattr(setup, "measured_machine", lambda *_: FAST)
    monkeypatch.setattr(setup, "known_machine", lambda *_: FAST)
    monkeypatch.setattr(setup, "next_steps", lambda: ["next: an editor\n"])
    return names


def set_up(settings, *, yes=False, from_continue=None):
    return setup.set_up(argparse.Namespace(yes=yes, from_continue=from_continue), settings)


def test_one_screen_says_what_is_chosen_what_it_costs_and_how_to_take_another(
    settings, installed, capsys
):
    set_up(settings, yes=True)
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert len(lines) < 16
    assert lines[-1] == "next: an editor"
    assert max(map(len, lines)) <= 100
    (chosen,) = (line.split() for line in lines if line.startswith("* offline"))
    assert chosen[1:6] == [CHOSEN, "1.1", "GB", "3.1", "GB"]
    assert chosen[-2:] == ["0.1", "s"]
    assert "foregram models install NAME" in shown
    assert "`auto`, the default, starts it; settings belong in /nowhere/foregram.toml\n" in shown
    assert installed == ["offline", CHOSEN]


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_at_a_terminal_it_asks(settings, installed, answer, status, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert set_up(settings) == status
    assert ("next: an editor" in capsys.readouterr().out) == (status == 0)
    assert (CHOSEN in installed) == (status == 0)


def test_elsewhere_it_only_says_what_it_would_do(settings, installed, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert set_up(settings) == 0
    assert installed == ["offline"]
    assert "foregram setup --yes" in capsys.readouterr().err


def test_what_is_installed_stays_as_it_is(settings, installed, capsys):
    installed.append(CHOSEN)
    assert set_up(settings) == 0
    assert installed == ["offline", CHOSEN]
    assert capsys.readouterr().out.endswith(f"{CHOSEN} is installed\nnext: an editor\n")


def test_a_setting_that_names_another_model_is_told_with_its_place(
    settings, installed, tmp_path, monkeypatch, capsys
):
    named = msgspec.structs.replace(settings, model="offline")
    set_up(named, yes=True)
    told = capsys.readouterr().out
    assert "FOREGRAM_MODEL says that `model` is offline; remove that" in told
    assert f"{CHOSEN} is installed\n" in told  # no host takes it yet
    file = tmp_path / "foregram.toml"
    file.write_text('model = "offline"\n')
    monkeypatch.setenv("FOREGRAM_CONFIG", str(file))
    set_up(named, yes=True)
    assert f"{file} says that `model` is offline; remove that" in capsys.readouterr().out


def test_the_memory_of_the_host_that_runs_counts_as_free(settings, installed, monkeypatch, capsys):
    async def host_status(_settings):
        status = Status(1, "0.1.0", "ready", 42, 1.0, memory_mb=4000.0)
        mapped = msgspec.structs.replace(status, mapped_bytes=1_500_000_000)  # is free already
        return ProbeResult("status", mapped)

    monkeypatch.setattr(setup, "host_status", host_status)
    set_up(settings, yes=True)
    assert capsys.readouterr().out.startswith("8.5 GB of memory are free")


def test_a_model_for_which_the_disk_has_no_room_is_not_chosen(
    settings, installed, monkeypatch, capsys
):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=4e9))
    assert set_up(settings, yes=True) == 0
    assert installed == ["offline"]
    (row,) = (line for line in capsys.readouterr().out.splitlines() if f" {CHOSEN} " in line)
    assert row.endswith("needs 4.2 GB of free disk")
    installed.clear()
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1e9))
    told = r"takes up to 1\.8 GB of disk while it is installed, and 1\.0 GB are free; make room"
    with pytest.raises(CacheError, match=told):
        set_up(settings, yes=True)


def test_a_failed_download_is_a_sentence(settings, installed, monkeypatch, capsys):
    def fails(name, cache_folder):
        raise ModelNotFoundError("pip install failed: ERROR: no network")

    monkeypatch.setattr(setup, "install", fails)
    monkeypatch.setattr(command_line, "_settings", lambda command: settings)
    assert command_line.main(["setup", "--yes"]) == 3
    assert capsys.readouterr().err.endswith("foregram: pip install failed: ERROR: no network\n")


def test_with_a_model_on_another_machine_the_editors_are_left(settings, installed, capsys):
    remote = msgspec.structs.replace(settings, host_url="https://gpu:8012")
    assert set_up(remote) == 0
    out, err = capsys.readouterr()
    assert "the model runs at https://gpu:8012" in err
    assert out == "next: an editor\n"
    assert installed == ["offline"]


def test_on_a_gpu_the_model_for_its_memory_is_named(settings, installed, monkeypatch, capsys):
    gpu = DeviceChoice("cuda:0", "A GPU")
    monkeypatch.setattr(DeviceChoice, "of", lambda name: gpu)
    monkeypatch.setattr("engine.model.gpu.fit.picked", lambda device, dtype: ("7b", "fp8"))
    assert set_up(settings) == 0
    told = capsys.readouterr().out
    assert told.startswith("A GPU: 7b is the best model for its memory\n`auto`, the default, ")
    assert "the host fetches it when" in told
    set_up(msgspec.structs.replace(settings, model="0.5b"))
    told = capsys.readouterr().out
    assert "FOREGRAM_MODEL says that `model` is 0.5b; remove that" in told
    assert "the host fetches it when" not in told
    assert installed == ["offline"]
    assert set_up(settings, yes=True) == 0
    assert installed == ["offline", "7b"]


@pytest.fixture
def continues(tmp_path, monkeypatch):
    """Continue's configuration; `foregram.toml` is beside it."""
    monkeypatch.setenv("FOREGRAM_CONFIG", str(tmp_path / "foregram.toml"))
    path = tmp_path / "config.yaml"
    path.write_text(
        "models: [{provider: ollama, model: 'qwen2.5-coder:7b', roles: [autocomplete]}]"
    )
    return path


def test_settings_of_continue_are_taken_over_instead(settings, installed, continues, capsys):
    assert set_up(settings, yes=True, from_continue=continues) == 0
    assert (continues.parent / "foregram.toml").read_text() == 'model = "7b"\n'
    told = capsys.readouterr().out
    shown = "`foregram setup` shows if it suits this machine"
    end = f"`foregram models install 7b` installs the model; {shown}\nnext: an editor\n"
    assert told.endswith(end)
    assert installed == ["offline"]


def test_a_no_leaves_the_settings_as_they_are(settings, installed, continues, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert set_up(settings, from_continue=continues) == 1
    assert not (continues.parent / "foregram.toml").exists()


def test_a_gpu_that_only_lacks_pytorch_comes_first(settings, installed, monkeypatch, capsys):
    monkeypatch.setattr(setup, "gpu_without_torch", lambda: "a GPU is here: pip install pytorch")
    assert set_up(settings, yes=True) == 0
    told = capsys.readouterr().out
    assert told.startswith("a GPU is here: pip install pytorch; until then, on the CPU:\n")
    assert CHOSEN in installed


def test_the_doctor_names_the_model_and_a_better_one(settings, installed, monkeypatch):
    monkeypatch.setattr(setup, "check_model", lambda name: Check("model", "ok", f"{name}: whole"))
    check = setup.check_choice(settings)
    assert check.what.startswith("auto: offline: whole; ")
    assert check.what.endswith(f"{CHOSEN} would save more keys here: `foregram setup` installs it")
    named = setup.check_choice(msgspec.structs.replace(settings, model="offline"))
    assert named.what == "offline: whole"


def test_the_doctor_does_not_judge_a_speed_that_nobody_has_measured(
    settings, installed, monkeypatch
):
    installed.append(CHOSEN)
    monkeypatch.setattr(setup, "known_machine", lambda *_: CpuMachine(6e9, float("inf")))
    monkeypatch.setattr(setup, "check_model", lambda name: Check("model", "ok", f"{name}: whole"))
    told = setup.check_choice(settings).what
    assert told == f"auto: offline: whole; {CHOSEN} is timed when a host starts"
