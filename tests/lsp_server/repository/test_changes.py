"""Which reported changes an index follows."""

import shutil

import pytest

from lsp_server.repository.changes import Changes
from lsp_server.repository.filling import Filling
from lsp_server.repository.source_files import SourceFiles, is_never_indexed
from lsp_server.repository.store import Store


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "work"
    for name in ("a.py", "sub/b.py", "sub/c.py", "env/lib/d.py", "out/e.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")
    (root / "env/pyvenv.cfg").touch()
    (root / ".gitignore").write_text("out/\n")
    return root


@pytest.fixture
def changes(root):
    files, index = SourceFiles(root), root.parent / "index.sqlite"
    store = Store.build(index, root)
    Filling(store, files).scan()
    store.close()
    return Changes(files, index)


def test_a_file_that_is_as_the_index_has_it_needs_nothing(changes, root):
    paths = ["a.py", "env", "out", "env/lib/d.py", "out/e.py", "out/new.py", "gone.py"]
    assert changes.in_need(paths, 9) == []
    (root / "a.py").write_text("x = 22\n")
    (root / "out/e.py").write_text("x = 22\n")
    (root / "env/lib/d.py").write_text("x = 22\n")
    assert changes.in_need(paths, 9) == ["a.py"]


def test_what_came_went_or_is_ignored_from_now_on_is_followed(changes, root):
    (root / "new.py").write_text("x = 1\n")
    shutil.rmtree(root / "sub")
    (root / ".foregramignore").write_text("a.py\n")
    assert changes.in_need(["new.py", "sub", "sub/b.py", "a.py"], 9) == [
        "new.py",
        "sub",
        "sub/b.py",
        "a.py",
    ]


def test_many_changes_are_a_look_at_all_files(changes, root):
    (root / "a.py").unlink()
    (root / "sub/b.py").unlink()
    assert changes.in_need(["a.py", "sub/b.py"], 2) == ["a.py", "sub/b.py"]
    assert changes.in_need(["a.py", "sub/b.py"], 1) is None


def test_a_folder_that_came_is_a_look_at_all_files(changes):
    assert changes.in_need(["sub"], 9) is None


def test_without_a_whole_index_all_files_are_looked_at(changes, root):
    changes.index.unlink()
    assert changes.in_need(["a.py"], 9) is None
    Store.build(changes.index, root).close()
    assert changes.in_need(["a.py"], 9) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".git/index", True),
        (".git/refs/heads/main", True),
        ("web/node_modules/a/b.js", True),
        ("node_modules", True),
        ("a.pyc", True),
        ("cache/repository/x.sqlite-wal", True),
        ("src/a.py", False),
        (".gitignore", False),
        ("sub/.foregramignore", False),
        ("Makefile", False),
    ],
)
def test_the_name_alone_says_most(path, expected):
    assert is_never_indexed(path) is expected
