"""The commit that `foregram --version` prints: of a clone, of a build, or none."""

import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

import engine.commit


def git(folder, *words):
    me = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    done = subprocess.run(["git", *me, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.fixture
def file(tmp_path):
    """A copy of the module in a folder that is no clone."""
    (tmp_path / "engine").mkdir()
    return Path(shutil.copy(engine.commit.__file__, tmp_path / "engine"))


@pytest.fixture
def clone(file):
    root = file.parents[1]
    git(root, "init")
    git(root, "add", ".")
    git(root, "commit", "--message=First")
    return root


def commit_of(file):
    return runpy.run_path(str(file))["commit"]()


def test_a_clone_has_the_commit_that_is_checked_out_whatever_its_tags(clone, file):
    git(clone, "tag", "--annotate", "--message=First", "v1")
    assert commit_of(file) == git(clone, "rev-parse", "HEAD")[:12]


def test_a_changed_file_is_told(clone, file):
    before = commit_of(file)
    file.write_text(file.read_text() + "\n")
    assert commit_of(file) == f"{before}-dirty"


def test_a_folder_that_is_no_clone_has_none(file):
    assert commit_of(file) == ""


def test_without_git_there_is_none(clone, file, monkeypatch):
    monkeypatch.setenv("PATH", str(clone))
    assert commit_of(file) == ""


def test_what_was_built_has_the_commit_that_it_was_built_of(clone, file):
    file.with_name("commit.txt").write_text("0123456789ab")
    assert commit_of(file) == "0123456789ab"
