"""Reasons of empty answers, kept by language servers and read by `foregram why`."""

import json
import os
import stat
import time
from argparse import Namespace
from pathlib import Path

import pytest

from engine.host.runtime import RuntimeFolder
from lsp_server.reasons import Reason, ReasonLog
from lsp_server.settings import Settings
from lsp_server.why import show_why, write_reasons


def log(*reasons: Reason, at: float = 0.0, file: str = "a.py") -> ReasonLog:
    moments = iter(range(len(reasons)))
    kept = ReasonLog(clock=lambda: at + next(moments))
    for reason in reasons:
        kept.add(f"file:///work/{file}", reason)
    return kept


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def shown(folder, capsys):
    """What `foregram why` prints."""

    def show(*, lines: int = 20, as_json: bool = False) -> str:
        settings = Settings(cache_folder=folder, runtime_folder=folder)
        assert show_why(Namespace(lines=lines, json=as_json), settings) == 0
        return str(capsys.readouterr().out)

    return show


def test_where_nothing_is_known_it_says_so_and_makes_no_folder(folder, shown):
    assert shown() == "no empty answers are known\n"
    assert shown(as_json=True) == "[]\n"
    assert not folder.exists()


def test_the_answers_of_all_servers_stand_in_the_order_of_time(folder, shown):
    write_reasons(folder, "one", log(Reason.BLANK, Reason.DISABLED, at=100.0))
    write_reasons(folder, "two", log(Reason.BINARY, at=100.5, file="b.bin"))
    answers = json.loads(shown(as_json=True))
    assert [answer["reason"] for answer in answers] == ["blank", "binary", "disabled"]
    text = shown(lines=2).splitlines()
    assert [line[8:] for line in text] == [
        "  b.bin: the file is binary (binary)",
        "  a.py: completion is switched off for this language or file (disabled)",
    ]


def test_a_server_replaces_what_it_wrote_before(folder, shown):
    write_reasons(folder, "one", log(Reason.BLANK))
    write_reasons(folder, "one", log(Reason.BLANK, Reason.BINARY))
    assert len(json.loads(shown(as_json=True))) == 2


def test_what_is_damaged_or_cannot_be_read_hides_nothing_else(folder, shown):
    for client in ("a", "m", "z"):
        write_reasons(folder, client, log(Reason.BLANK))
    (folder / "why" / "b.json").write_text('[{"time_s": 1, "file": "x", "reason": "of old"}]')
    (folder / "why" / "c.json").write_bytes(b"\xff{")
    (folder / "why" / "d.json").mkdir()
    (folder / "why" / "e.json").symlink_to("nowhere")
    assert len(json.loads(shown(as_json=True))) == 3


def test_what_is_older_than_a_day_is_removed(folder, shown):
    write_reasons(folder, "old", log(Reason.BLANK))
    write_reasons(folder, "new", log(Reason.BINARY))
    long_ago = time.time() - 25 * 3600
    os.utime(folder / "why" / "old.json", (long_ago, long_ago))
    assert [answer["reason"] for answer in json.loads(shown(as_json=True))] == ["binary"]
    assert [path.name for path in (folder / "why").iterdir()] == ["new.json"]


def test_a_runtime_folder_that_it_makes_can_be_used_by_a_host(folder):
    write_reasons(folder, "one", log(Reason.BLANK))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert RuntimeFolder.open(folder).token()


def test_nothing_is_written_where_others_look(folder):
    folder.mkdir(mode=0o755)
    write_reasons(folder, "one", log(Reason.BLANK))
    assert not list(folder.iterdir())


def test_where_nothing_can_be_written_a_server_goes_on(tmp_path):
    (tmp_path / "file").touch()
    write_reasons(tmp_path / "file" / "run", "one", log(Reason.BLANK))
