"""`foregram uninstall`: what is ours is listed and removed, and nothing beside it."""

import argparse
import asyncio
import io
import sys

import msgspec
import pytest

from engine.errors import InputError
from lsp_server.cli import uninstall as command
from lsp_server.cli.uninstall import uninstall
from lsp_server.host.daemon import ensure_host

MODEL = "models/tiny-01234567-int8-v5"
OURS = (
    *(f"{MODEL}/weights.bin", "models/.tiny-01234567-int8-v5.lock"),
    "models/tiny-0123456789abcdef-int8-v3/manifest.json",
    *("learned/0123-cpu.json", "learned/0123-cpu.npz", "outcomes/tiny.json", "saved/days.json"),
    *("repository/0123.sqlite", "repository/0123.sqlite.lock", "gpu-checks/0123.json"),
    *("numba/cpu_forward_0123/forward.nbi", "numba/cpu_forward_0123/forward.1.nbc"),
)


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A virtual environment that was made for foregram, in which this seems to run."""
    folder = tmp_path / "foregram.foregram/server"
    (folder / "lib").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    return folder


@pytest.fixture
def settings(stub, tmp_path):
    cache = tmp_path / "cache"
    for name in OURS:
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_bytes(b"x" * 2**20)
    return msgspec.structs.replace(stub.settings, cache_folder=cache)


def words(*, yes):
    return argparse.Namespace(yes=yes)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_all_that_is_ours_goes_and_the_host_ends_first(stub, settings, environment, capsys):
    asyncio.run(ensure_host(stub.settings, stub.command()))
    assert uninstall(words(yes=True), settings) == 0
    assert not stub.folder.host_is_alive()
    assert not settings.cache_folder.exists()
    assert not environment.exists()
    assert [path.name for path in settings.runtime_folder.iterdir()] == ["starts"]  # the stub's own
    assert environment.parent.exists()
    shown = capsys.readouterr().out
    assert f"3 MB  converted models: {settings.cache_folder}/models" in shown
    assert f"9 MB  caches: {settings.cache_folder}/" in shown


@pytest.mark.parametrize("name", ["models/llama-v3/weights", "repository/.git/HEAD", "learned/x"])
def test_of_folders_that_others_use_only_what_is_ours_goes(settings, environment, name):
    """A setting may name a folder in which there is another `models`."""
    theirs = settings.cache_folder / name
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_text("x")
    uninstall(words(yes=True), settings)
    assert [path for path in settings.cache_folder.rglob("*") if path.is_file()] == [theirs]


def test_what_others_keep_in_these_folders_stays(settings, environment):
    for folder in (settings.cache_folder, settings.runtime_folder):
        (folder / "of others").write_text("x")
    linked = settings.cache_folder.with_name("linked")
    (settings.cache_folder / "models").rename(linked)
    (settings.cache_folder / "models").symlink_to(linked)
    uninstall(words(yes=True), settings)
    for folder in (settings.cache_folder, settings.runtime_folder):
        assert [path.name for path in folder.iterdir()] == ["of others"]
    assert (linked.parent / MODEL.replace("models", "linked")).exists()


def test_an_environment_of_others_stays(settings, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "mine"))
    monkeypatch.setattr(command, "installed_bytes", lambda model: 0)
    uninstall(words(yes=True), settings)
    assert (tmp_path / "mine").exists()
    told = (
        f"stays: {tmp_path / 'mine'}; `{sys.executable} -m pip uninstall foregram` removes it there"
    )
    assert told in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 1), ("", 1)])
def test_at_a_terminal_it_is_asked(settings, environment, monkeypatch, answer, status):
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    assert uninstall(words(yes=False), settings) == status
    assert environment.exists() is bool(status)


def test_a_script_has_to_say_yes(settings, environment, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(InputError, match="--yes"):
        uninstall(words(yes=False), settings)
    assert environment.exists()
