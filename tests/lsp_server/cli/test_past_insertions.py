"""Insertions of a git history: the newest, as they were typed, and nothing private."""

import msgspec
import pytest

from engine.errors import InputError
from lsp_server.cli.past_insertions import past_insertions
from lsp_server.settings import load_settings
from tests.support.git_history import commit, git, insertion_history

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


def test_what_is_missing_is_not_fetched_by_a_program_that_the_repository_names(tmp_path):
    insertion_history(tmp_path, 2)
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": str(tmp_path),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": f"touch {tmp_path}/ran; false",
    }
    for one in settings.items():
        git(tmp_path, "config", *one)
    blob = git(tmp_path, "rev-parse", "HEAD:file1.py")
    (tmp_path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    assert names(tmp_path, 1) == ["file0.py"]
    assert not (tmp_path / "ran").exists()
