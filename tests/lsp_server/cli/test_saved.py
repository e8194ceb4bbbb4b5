"""`foregram saved`: what suggestions saved, printed and forgotten."""

import argparse
import json

import msgspec
import pytest

from engine.errors import CacheError
from lsp_server.cli import saved
from lsp_server.cli.saved import show_saved
from lsp_server.saved import Day, add, saved_days
from lsp_server.settings import Settings

NOTHING = "today: 0 keystrokes saved, 0 of 0 suggestions accepted\n"


@pytest.fixture(autouse=True)
def now(monkeypatch):
    monkeypatch.setattr(saved, "today", lambda: "2026-11-29")


@pytest.fixture
def settings(tmp_path):
    days = {"2026-11-28": Day(1234, 30, 40), "2026-11-29": Day(5), "2026-11-30": Day(6, 1, 2)}
    add(tmp_path, days)
    return Settings(cache_folder=tmp_path, runtime_folder=tmp_path)


def words(*, as_json=False, reset=False):
    return argparse.Namespace(json=as_json, reset=reset)


def test_today_is_the_last_line_also_after_the_clock_was_set_back(settings, capsys):
    assert show_saved(words(), settings) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2026-11-28: 1,234 keystrokes saved, 30 of 40 suggestions accepted (75%)",
        "2026-11-30: 6 keystrokes saved, 1 of 2 suggestions accepted (50%)",
        "today: 5 keystrokes saved, 0 of 0 suggestions accepted",
    ]


def test_programs_get_the_numbers(settings, capsys):
    show_saved(words(as_json=True), settings)
    told = json.loads(capsys.readouterr().out)
    assert told["2026-11-28"] == {"keystrokes": 1234, "accepted": 30, "offered": 40}


def test_a_reset_forgets_every_day(settings, capsys):
    for _ in range(2):
        assert show_saved(words(reset=True), settings) == 0
        assert capsys.readouterr().out == NOTHING
    assert saved_days(settings.cache_folder) == {}


def test_a_reset_that_fails_says_why_in_a_sentence(settings, tmp_path):
    (tmp_path / "other/saved/days.json").mkdir(parents=True)
    elsewhere = msgspec.structs.replace(settings, cache_folder=tmp_path / "other")
    with pytest.raises(CacheError, match=r"days\.json cannot be removed: "):
        show_saved(words(reset=True), elsewhere)
