"""Which file a URI names."""

from pathlib import Path

import pytest

from lsp_server.documents.file_path import file_path, possible_paths


def test_a_file_is_named_by_its_path_and_what_is_none_by_nothing():
    assert file_path("file:///work/a%20b.py") == Path("/work/a b.py")
    assert file_path("") is None


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///work/C#/what?.py", "/work/C#/what?.py"),
        ("file:///work/C%23/100%.py", "/work/C#/100%.py"),
        ("file://localhost/work/a.py", "/work/a.py"),
        ("FILE:/work/../a.py", "/a.py"),
        ("file://server/share/a.py", "//server/share/a.py"),
        ("file:///caf%E9.py", "/caf\udce9.py"),
    ],
)
def test_all_behind_the_host_is_the_path(uri, path):
    assert file_path(uri) == Path(path)


def test_each_file_that_a_uri_may_mean_is_named_the_likeliest_first():
    assert possible_paths("file:///w/C#/.env")[0] == Path("/w/C#/.env")
    assert possible_paths("vscode-notebook-cell:/w/n.ipynb#W0")[0] == Path("/w/n.ipynb")
    assert set(possible_paths("git:/w/%2541?b")) == {
        *map(Path, ("/w/%41", "/w/%2541", "/w/%41?b", "/w/%2541?b"))
    }
    assert possible_paths("untitled:") == ()


@pytest.mark.parametrize("uri", ["weird://[x/y.py", "http://[::1"])
def test_a_uri_that_makes_no_sense_names_none(uri):
    assert file_path(uri) is None
