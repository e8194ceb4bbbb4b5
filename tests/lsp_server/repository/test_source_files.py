"""Which files are indexed."""

import os

import pytest

from lsp_server.repository.source_files import MAX_BYTES, SourceFiles


@pytest.fixture
def root(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def write(root, name: str, text: str = "x = 1\n"):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def walked(root, **options) -> set[str]:
    return {path for path, _ in SourceFiles(root, **options).walk()}


def test_tools_state_installed_packages_and_binaries_are_left_out(root):
    for name in ("a.py", "b/c.ts", ".git/x.py", "node_modules/y.js", "env/lib/z.py", "p.png"):
        write(root, name)
    write(root, "env/pyvenv.cfg")
    assert walked(root) == {"a.py", "b/c.ts"}


def test_secret_and_ignored_files_are_left_out_unless_they_are_allowed(root):
    for name in ("a.py", "secrets.yml", "build/b.py", "notes.log"):
        write(root, name)
    write(root, ".gitignore", "build/\n*.log\n")
    assert walked(root) == {".gitignore", "a.py"}
    assert walked(root, allowed=["secrets.yml"]) == {".gitignore", "a.py", "secrets.yml"}


def test_globs_name_what_is_indexed(root):
    for name in ("src/a.py", "docs/b.py"):
        write(root, name)
    assert walked(root, globs=["src/"]) == {"src/a.py"}


def test_links_pipes_empty_and_large_files_are_left_out(root, tmp_path):
    write(root, "a.py")
    write(root, "empty.py", "")
    write(root, "large.py", "x" * (MAX_BYTES + 1))
    write(tmp_path, "outside.py")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.py")
    assert walked(root) == {"a.py"}
    files = SourceFiles(root)
    assert (files.text("link.py"), files.text("pipe.py")) == (None, None)
    assert (files.stamp("loop/a.py"), files.is_entered("loop")) == (None, False)


def test_what_cannot_be_looked_at_ends_nothing(root, monkeypatch):
    write(root, "a.py")
    write(root, "closed/b.py")
    looked = os.lstat

    def lstat(path):
        if "/closed/" in str(path):
            raise PermissionError(path)
        return looked(path)

    monkeypatch.setattr(os, "lstat", lstat)
    assert walked(root) == {"a.py"}
    files = SourceFiles(root)
    long = "n" * 300
    assert (files.stamp(f"{long}/a.py"), files.stamp("a\0.py")) == (None, None)
    assert not files.is_entered(long)
    assert not files.is_entered("closed/sub")


def test_a_text_with_a_secret_and_one_that_is_no_text_are_not_read(root):
    write(root, "a.py", "one\r\ntwo\n")
    write(root, "key.py", "KEY = 'ghp_" + "a1B2c3D4e5" * 4 + "'\n")
    (root / "b.py").write_bytes(b"\xff\xfe\0")
    files = SourceFiles(root)
    assert files.text("a.py") == "one\ntwo\n"
    assert (files.text("key.py"), files.text("b.py"), files.text("gone.py")) == (None, None, None)
    assert "KEY" in (SourceFiles(root, allowed=["key.py"]).text("key.py") or "")


def test_what_is_ignored_from_now_on_is_not_shown_any_more(root):
    write(root, "sub/a.py")
    files = SourceFiles(root)
    assert files.stamp("sub/a.py") is not None
    write(root, ".gitignore", "sub/\n")
    assert files.stamp("sub/a.py") is None
