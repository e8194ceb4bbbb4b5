"""Reasons of empty answers, kept by language servers and read by `foregram why`."""

import json
import os
import stat
import time
from argparse import Namespace
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.host.runtime import RuntimeFolder
from engine.request import Cost
from lsp_server.cli.why import show_why
from lsp_server.reasons import Reason
from lsp_server.settings import Settings
from lsp_server.why import EmptyAnswer, Kept, LastPrompt, prompt_summary, shown_name


def log(*reasons: Reason, at: float = 0.0, file: str = "a.py", line: int = 3) -> Kept:
    uri = f"file:///work/{file}"
    answers = (EmptyAnswer(at + number, reason, uri, line) for number, reason in enumerate(reasons))
    return Kept(tuple(answers))


NOTHING = (
    "no empty answers are known\nno prompt is known either; `foregram doctor` checks everything\n"
)


def prompt(cost: Cost) -> Kept:
    return Kept(prompt=LastPrompt(time.time(), "file:///work/cart.py", prompt_summary(cost)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def shown(folder, capsys):
    def show(*, lines: int = 20, as_json: bool = False, file: Path | None = None) -> str:
        settings = Settings(cache_folder=folder, runtime_folder=folder)
        assert show_why(Namespace(lines=lines, json=as_json, file=file), settings) == 0
        return str(capsys.readouterr().out)

    return show


def test_where_nothing_is_known_it_leads_to_the_doctor_and_makes_no_folder(folder, shown):
    assert shown() == NOTHING
    assert shown(as_json=True) == "[]\n"
    assert not folder.exists()


def test_a_second_text_is_told_with_its_cause(folder, shown):
    prompt(Cost(8, 8, 8, 812, 790, 1.0, 1.0, {}, avoids_suffix=True)).write(folder, "one")
    assert "first text was empty or only repeated what follows the cursor, so another" in shown()


def test_the_last_prompt_is_told_with_its_files(folder, shown):
    alone = Cost(8, 8, 8, 812, 790, 1.0, 1.0, {})
    shows = replace(alone, neighbour_tokens=301, neighbours=("models.py", "\x1b[31m"), num_open=3)
    prompt(shows).write(folder, "one")
    told = (
        "the last prompt, for cart.py 0 s ago: 812 tokens, 790 of them cached; "
        "301 from 2 of 3 other open files (models.py, \N{REPLACEMENT CHARACTER}[31m)\n"
    )
    assert shown() == f"no empty answers are known\n{told}"
    assert shown(file=Path("/work/cart.py")).endswith(told)
    assert shown(file=Path("/work/other.py")) == NOTHING
    prompt(alone).write(folder, "one")
    assert shown().endswith(": 812 tokens, 790 of them cached; no other file was open\n")
    found = replace(alone, repository_tokens=99, repository=("store.py",))
    prompt(found).write(folder, "one")
    assert shown().endswith("was open; 99 from 1 file of the repository (store.py)\n")


def test_the_answers_of_all_servers_stand_in_the_order_of_time(folder, shown):
    log(Reason.BLANK, Reason.DISABLED, at=100.0).write(folder, "one")
    log(Reason.BINARY, at=100.5, file="b.bin").write(folder, "two")
    answers = json.loads(shown(as_json=True))
    assert [answer["reason"] for answer in answers] == ["blank", "binary", "disabled"]
    text = shown(lines=2).splitlines()
    assert [line.partition("  ")[2] for line in text] == [
        "b.bin:3: the file is binary (binary)",
        "a.py:3: Suggestions are off (disabled); set `enable = true`",
    ]


def test_an_answer_tells_its_age_and_what_to_run(folder, shown):
    log(Reason.HOST_UNREACHABLE, at=time.time() - 250).write(folder, "one")
    assert ", 4 min ago  a.py:3: " in shown()
    assert shown().endswith("(host_unreachable); run `foregram doctor`\n")
    (answer,) = json.loads(shown(as_json=True))
    assert 249 < answer["age_s"] < 300
    assert answer["remedy"]["action"] == "doctor"


def test_a_file_is_known_by_the_last_part_of_its_uri():
    assert shown_name("file:///work/a%20b.py") == "a b.py"
    assert shown_name("untitled:Untitled-1") == "Untitled-1"
    assert shown_name("http://[bad/x.py") == "x.py"


def test_a_file_is_told_apart_by_its_path(folder, shown):
    log(Reason.BLANK, file="one/a.py").write(folder, "one")
    log(Reason.BINARY, file="two/a.py").write(folder, "two")
    (answer,) = json.loads(shown(as_json=True, file=Path("/work/two/a.py")))
    assert answer["reason"] == "binary"
    assert shown(file=Path("/work/a.py")) == NOTHING


def test_what_was_withdrawn_is_left_out_as_after_an_accept(folder, shown):
    log(Reason.CANCELLED, Reason.SUPERSEDED, Reason.BLANK).write(folder, "one")
    assert [answer["reason"] for answer in json.loads(shown(as_json=True))] == ["blank"]
    log(Reason.CANCELLED).write(folder, "one")
    assert json.loads(shown(as_json=True)) == []


def test_what_each_key_repeats_is_told_once(folder, shown):
    log(Reason.PROSE, Reason.PROSE, Reason.BLANK, at=1.0).write(folder, "one")
    answers = json.loads(shown(as_json=True))
    assert [(one["reason"], one["time_s"]) for one in answers] == [("prose", 2.0), ("blank", 3.0)]


def test_a_name_cannot_speak_to_the_terminal(folder, shown):
    log(Reason.BLANK, file="%1b%5d0;owned%07%0a.py").write(folder, "one")
    log(Reason.BINARY, file="\x1b[2J\r.py").write(folder, "two")
    assert shown().isprintable() is False  # its line ends
    assert all(line.isprintable() for line in shown().splitlines())
    assert len(shown().splitlines()) == 2


def test_what_is_damaged_or_cannot_be_read_hides_nothing_else(folder, shown):
    for client in ("a", "m", "z"):
        log(Reason.BLANK, file=f"{client}.py").write(folder, client)
    of_old = b'{"answers": [{"time_s": 1, "uri": "x", "reason": "of old"}]}'
    damaged = {"b": of_old, "c": b"\xff{", "f": b'{"answers": [{"uri": "\xff"}]}', "g": b"[]"}
    for name, content in damaged.items():
        (folder / "why" / f"{name}.json").write_bytes(content)
    (folder / "why" / "d.json").mkdir()
    (folder / "why" / "e.json").symlink_to("nowhere")
    assert len(json.loads(shown(as_json=True))) == 3


@pytest.mark.parametrize("is_written", [True, False], ids=["at a write", "at a reading"])
def test_what_is_older_than_a_day_is_removed(folder, shown, is_written):
    log(Reason.BLANK).write(folder, "old")
    log(Reason.BINARY).write(folder, "new")
    long_ago = time.time() - 25 * 3600
    os.utime(folder / "why" / "old.json", (long_ago, long_ago))
    if is_written:
        log(Reason.BINARY).write(folder, "newer")
        assert not (folder / "why" / "old.json").exists()
    answers = json.loads(shown(as_json=True))
    assert {answer["reason"] for answer in answers} == {"binary"}
    assert not (folder / "why" / "old.json").exists()


def test_a_runtime_folder_that_it_makes_can_be_used_by_a_host(folder):
    log(Reason.BLANK).write(folder, "one")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert RuntimeFolder.open(folder).token()


def test_nothing_is_written_where_others_look(folder):
    folder.mkdir(mode=0o755)
    log(Reason.BLANK).write(folder, "one")
    assert not list(folder.iterdir())


def test_where_nothing_can_be_written_a_server_goes_on(tmp_path):
    (tmp_path / "file").touch()
    log(Reason.BLANK).write(tmp_path / "file" / "run", "one")
