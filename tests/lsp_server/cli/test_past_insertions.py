"""Insertions of a git history: the newest, as they were typed, and nothing private."""

import subprocess

import msgspec
import pytest

from engine.errors import InputError
from lsp_server.cli.past_insertions import past_insertions
from lsp_server.settings import load_settings
from tests.support.git_history import commit, insertion_history

SETTINGS = load_settings(environ={}).settings
SECRET = "key = 'AKIAIOSFODNN7EXAMPLQ'\n"


def names(folder, count, **settings):
    chosen = msgspec.structs.replace(SETTINGS, **settings)
    return [item.path for item in past_insertions(folder, count, chosen)]


def test_the_newest_insertion_comes_first_and_joined_it_is_the_file(tmp_path):
    insertion_history(tmp_path, 3)
    items = past_insertions(tmp_path, 2, SETTINGS)
    assert [item.path for item in items] == ["file2.py", "file1.py"]
    [item, _] = items
    assert item.target.startswith("def added_2")
    assert item.prefix + item.target + item.suffix == (tmp_path / item.path).read_text()


def test_other_files_of_the_commit_are_open(tmp_path):
    insertion_history(tmp_path, 2, other="x = 1\n")
    text = (tmp_path / "file0.py").read_text()
    body = "\n".join(f"added_{line} = 'a line'" for line in range(5))
    commit(tmp_path, file0=f"{text}{body}\nlast = 2\n", other="x = 2\n")
    item = past_insertions(tmp_path, 1, SETTINGS)[0]
    assert [one.path for one in item.open_buffers] == ["other.py"]


def test_ignored_disabled_and_secret_files_are_left_out(tmp_path):
    insertion_history(tmp_path, 4)
    (tmp_path / ".foregramignore").write_text("file3.py\n")
    assert names(tmp_path, 2, disabled_globs=("file2*",)) == ["file1.py", "file0.py"]
    text = (tmp_path / "file1.py").read_text()
    commit(tmp_path, file1=text + SECRET)
    commit(tmp_path, file1=text + SECRET + "added = 'a line that is long'\n" * 4 + "x = 1\n")
    commit(tmp_path, file1=text)
    assert past_insertions(tmp_path, 3, SETTINGS)[1].id.startswith("file1.py:9@")


def test_too_few_are_an_error_that_says_what_to_do(tmp_path):
    insertion_history(tmp_path, 1)
    with pytest.raises(InputError, match=r"has 1 insertions .* name another folder"):
        names(tmp_path, 2)
    with pytest.raises(InputError, match="git cannot read"):
        names(tmp_path / "nowhere", 1)


def test_nothing_that_a_repository_names_is_run(tmp_path):
    insertion_history(tmp_path, 2)
    (tmp_path / ".git/info/attributes").write_text("*.py diff=own filter=own\n")
    program = f"touch {tmp_path}/ran"
    for name in ("core.fsmonitor", "core.pager", "diff.external", "diff.own.command"):
        subprocess.run(("git", "-C", tmp_path, "config", name, program), check=True)
    for name in ("diff.own.textconv", "filter.own.smudge", "gpg.program", "log.showSignature"):
        value = "true" if name == "log.showSignature" else program
        subprocess.run(("git", "-C", tmp_path, "config", name, value), check=True)
    assert len(names(tmp_path, 2)) == 2
    assert not (tmp_path / "ran").exists()
