"""Files that are neither completed in nor sent.

Ignore files may be of a repository that means no good: each is answered, and at once.
"""

import os
import time
from pathlib import Path

import pytest

from lsp_server.privacy.hidden_files import HiddenFiles, path_filter
from lsp_server.reasons import Reason

SLOW = ["?*" * 60 + "b*"] * 2_000
FILE = "src/a.py"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", [".env", "deep/server.PEM", ".ssh/known_hosts"])
def test_a_file_is_secret_by_its_name_anywhere(root, name):
    assert HiddenFiles([root]).reason(root / name) is Reason.SECRET_FILE
    assert HiddenFiles([]).reason(root / name) is Reason.SECRET_FILE
    assert HiddenFiles([root]).reason(root / "main.py") is None


def test_a_nested_list_overrules_the_one_above(root):
    write(root / ".gitignore", "*.gen.py\n")
    write(root / "sub/.gitignore", "!a.gen.py\n")
    files = HiddenFiles([root])
    assert files.reason(root / "sub/a.gen.py") is None
    assert files.reason(root / "sub/b.gen.py") is Reason.IGNORED_FILE


def test_a_foregramignore_has_the_last_word(root):
    write(root / ".gitignore", "data.py\n")
    write(root / ".foregramignore", "!data.py\nsecretive/\n")
    files = HiddenFiles([root])
    assert files.reason(root / "data.py") is None
    assert files.reason(root / "secretive/a.py") is Reason.IGNORED_FILE


def test_lists_outside_of_the_workspace_say_nothing(root):
    write(root.parent / ".gitignore", "*.py\n")
    assert HiddenFiles([root]).reason(root / "a.py") is None
    assert HiddenFiles([root]).reason(root.parent / "a.py") is None


def test_the_innermost_workspace_is_the_files_own(root):
    write(root / ".gitignore", "inner/\n")
    assert HiddenFiles([root, root / "inner"]).reason(root / "inner/a.py") is None


def test_a_link_is_as_secret_as_its_target(root):
    write(root / ".env")
    (root / "notes.txt").symlink_to(root / ".env")
    assert HiddenFiles([root]).reason(root / "notes.txt") is Reason.SECRET_FILE
    assert (
        HiddenFiles([root], allowed=["notes.txt"]).reason(root / "notes.txt") is Reason.SECRET_FILE
    )


def test_a_link_into_an_ignored_folder_is_ignored(root):
    write(root / ".gitignore", "build/\n")
    write(root / "build/a.py")
    (root / "link").symlink_to(root / "build", target_is_directory=True)
    assert HiddenFiles([root]).reason(root / "link/a.py") is Reason.IGNORED_FILE


def test_a_workspace_may_be_named_through_a_link(root):
    write(root / ".gitignore", "a.py\n")
    link = root.parent / "link"
    link.symlink_to(root, target_is_directory=True)
    assert HiddenFiles([link]).reason(link / "a.py") is Reason.IGNORED_FILE
    assert HiddenFiles([link]).reason(root / "a.py") is None  # by this name it is outside


def test_settings_open_what_would_be_hidden(root):
    write(root / ".gitignore", "gen/\n")
    files = HiddenFiles([root], allowed=[".env.example", "gen/**"])
    assert files.reason(root / ".env.example") is None
    assert files.reason(root / "gen/a.py") is None
    assert files.reason(root / ".env") is Reason.SECRET_FILE


def test_names_that_no_system_can_hold_are_answered(root):
    (root / "loop").symlink_to("loop")
    for name in ("a\0b", "x" * 5000, "loop"):
        assert HiddenFiles([root]).reason(root / name) is None


def unreadable(file: Path) -> None:
    file.write_text("*.log\n")
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("root may read everything")


def link_to_a_list(file: Path) -> None:
    (file.parent / "list").write_text("*.log\n")
    file.symlink_to("list")


@pytest.mark.parametrize("name", [".gitignore", ".foregramignore"])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda file: file.symlink_to("/dev/stdin"), id="the server's input"),
        pytest.param(lambda file: file.symlink_to("/dev/zero"), id="an endless device"),
        pytest.param(link_to_a_list, id="a link to a list"),
        pytest.param(lambda file: file.symlink_to(file.name), id="a link to itself"),
        pytest.param(os.mkfifo, id="a pipe"),
        pytest.param(Path.mkdir, id="a folder"),
        pytest.param(unreadable, id="a file that nobody may read"),
        pytest.param(lambda file: file.write_text("a" * 4_000_000), id="megabytes"),
        pytest.param(
            lambda file: file.write_text("".join(f"d{n}\n" for n in range(100_000))),
            id="a hundred thousand patterns",
        ),
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
    (tmp_path / ".gitignore").write_text("\n".join(SLOW))
    began = time.process_time()
    reason = HiddenFiles([tmp_path]).reason(tmp_path / ("a" * 250))
    assert reason is Reason.UNCLEAR_IGNORE_FILE
    assert time.process_time() - began < 1.0


def test_a_file_below_more_folders_than_people_make_is_unclear(tmp_path):
    deep = tmp_path.joinpath(*["d"] * 3_000, "a.py")
    assert HiddenFiles([tmp_path]).reason(deep) is Reason.UNCLEAR_IGNORE_FILE


def test_a_list_that_changes_is_read_again_and_one_that_becomes_usable_is_used(tmp_path):
    os.mkfifo(tmp_path / ".gitignore")
    files = HiddenFiles([tmp_path])
    assert files.reason(tmp_path / FILE) is Reason.UNCLEAR_IGNORE_FILE
    (tmp_path / ".gitignore").unlink()
    assert files.reason(tmp_path / FILE) is None
    for text, expected in (("src\n", Reason.IGNORED_FILE), ("other\n", None)):
        (tmp_path / ".gitignore").write_text(text)
        assert files.reason(tmp_path / FILE) is expected


def test_a_verdict_that_is_known_costs_no_reading(tmp_path, monkeypatch):
    (tmp_path / ".gitignore").write_text("*.log\n")
    files = HiddenFiles([tmp_path])
    assert files.reason(tmp_path / FILE) is None
    monkeypatch.setattr("lsp_server.privacy.hidden_files.is_ignored", None)
    monkeypatch.setattr("lsp_server.privacy.hidden_files._text", None)
    assert files.reason(tmp_path / FILE) is None


@pytest.mark.parametrize("unclear", [True, False])
def test_a_setting_that_cannot_be_judged_is_answered_on_the_safe_side(unclear):
    many = path_filter([f"d{number}" for number in range(100_000)], unclear=unclear)
    slow = path_filter(SLOW, unclear=unclear)
    assert many("a.py") is slow("a" * 250) is unclear
