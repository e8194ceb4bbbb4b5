"""Ignore files of a repository that means no good: each is answered, and at once."""

import os
import time
from pathlib import PurePosixPath

import pytest

from lsp_server.privacy.hidden_files import HiddenFiles
from lsp_server.privacy.ignore_files import IgnoreFiles, SettingGlobs
from lsp_server.reasons import Reason

SLOW = ["?*" * 60 + "b*"] * 2_000
FILE = PurePosixPath("src/a.py")


def a_link_to_the_servers_input(file):
    file.symlink_to("/dev/stdin")


def a_link_to_an_endless_device(file):
    file.symlink_to("/dev/zero")


def a_link_to_a_list(file):
    (file.parent / "list").write_text("*.log\n")
    file.symlink_to("list")


def a_link_to_itself(file):
    file.symlink_to(file.name)


def a_pipe(file):
    os.mkfifo(file)


def a_folder(file):
    file.mkdir()


def a_file_that_nobody_may_read(file):
    file.write_text("*.log\n")
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("root may read everything")


def a_file_of_megabytes(file):
    file.write_text("a" * 4_000_000)


def a_hundred_thousand_patterns(file):
    file.write_text("".join(f"d{number}\n" for number in range(100_000)))


def a_pattern_that_takes_all_day(file):
    file.write_text("\n".join(SLOW))


@pytest.mark.parametrize("name", [".gitignore", ".foregramignore"])
@pytest.mark.parametrize(
    "make",
    [
        a_link_to_the_servers_input,
        a_link_to_an_endless_device,
        a_link_to_a_list,
        a_link_to_itself,
        a_pipe,
        a_folder,
        a_file_that_nobody_may_read,
        a_file_of_megabytes,
        a_hundred_thousand_patterns,
    ],
)
def test_what_is_no_list_of_ordinary_size_hides_what_is_below_it(tmp_path, name, make):
    (tmp_path / "src").mkdir()
    (tmp_path / ".gitignore").write_text("")
    make(tmp_path / "src" / name)
    files = HiddenFiles([tmp_path])
    began = time.monotonic()
    assert files.reason(tmp_path / FILE) is Reason.UNCLEAR_IGNORE_FILE
    assert files.reason(tmp_path / "b.py") is None
    assert time.monotonic() - began < 2.0
    assert HiddenFiles([tmp_path], allowed=["src/"]).reason(tmp_path / FILE) is None


def test_patterns_that_take_all_day_are_given_up_in_time(tmp_path):
    a_pattern_that_takes_all_day(tmp_path / ".gitignore")
    began = time.process_time()
    verdict = IgnoreFiles().verdict(tmp_path, PurePosixPath("a" * 250))
    assert verdict is Reason.UNCLEAR_IGNORE_FILE
    assert time.process_time() - began < 1.0


def test_a_file_below_more_folders_than_people_make_is_unclear(tmp_path):
    deep = PurePosixPath(*["d"] * 3_000, "a.py")
    assert IgnoreFiles().verdict(tmp_path, deep) is Reason.UNCLEAR_IGNORE_FILE


def test_a_list_that_becomes_usable_is_used(tmp_path):
    a_pipe(tmp_path / ".gitignore")
    files = IgnoreFiles()
    assert files.verdict(tmp_path, FILE) is Reason.UNCLEAR_IGNORE_FILE
    (tmp_path / ".gitignore").unlink()
    assert files.verdict(tmp_path, FILE) is None
    (tmp_path / ".gitignore").write_text("src\n")
    assert files.verdict(tmp_path, FILE) is Reason.IGNORED_FILE


def test_a_verdict_that_is_known_costs_no_reading(tmp_path, monkeypatch):
    (tmp_path / ".gitignore").write_text("*.log\n")
    files = IgnoreFiles()
    assert files.verdict(tmp_path, FILE) is None
    monkeypatch.setattr("lsp_server.privacy.ignore_files.is_ignored", None)
    monkeypatch.setattr("lsp_server.privacy.ignore_files._text", None)
    assert files.verdict(tmp_path, FILE) is None


@pytest.mark.parametrize("unclear", [True, False])
def test_a_setting_that_cannot_be_judged_is_answered_on_the_safe_side(unclear):
    many = SettingGlobs((f"d{number}" for number in range(100_000)), unclear=unclear)
    slow = SettingGlobs(SLOW, unclear=unclear)
    assert many.match("a.py") is slow.match("a" * 250) is unclear
