"""Files that are neither completed in nor sent."""

from pathlib import Path

import pytest

from lsp_server.privacy.hidden_files import HiddenFiles
from lsp_server.reasons import Reason


@pytest.fixture
def root(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        ".ENV",
        "prod.env",
        "server.PEM",
        "id_rsa",
        "id_ed25519.pub",
        "deep/down/.netrc",
        ".npmrc",
        ".dev.vars",
        "secrets.yml",
        "credentials.json",
        "terraform.tfstate",
        "terraform.tfstate.backup",
        ".aws/credentials",
        ".ssh/known_hosts",
        ".gnupg/deep/trustdb.gpg",
        "vault.kdbx",
    ],
)
def test_a_file_is_secret_by_its_name_anywhere(root, name):
    assert HiddenFiles([root]).reason(root / name) is Reason.SECRET_FILE
    assert HiddenFiles([]).reason(root / name) is Reason.SECRET_FILE


@pytest.mark.parametrize(
    "name", ["main.py", "environment.ts", "keys.py", "my.envelope", "ssh/a.py"]
)
def test_ordinary_files_are_open(root, name):
    assert HiddenFiles([root]).reason(root / name) is None


@pytest.mark.parametrize(
    ("patterns", "name", "is_hidden"),
    [
        ("*.log", "a.log", True),
        ("*.log\n!keep.log", "keep.log", False),
        ("build/", "build/deep/a.py", True),
        ("build/\n!build/a.py", "build/a.py", True),  # git: not below an ignored folder
        ("out/**\n!out/a.py", "out/a.py", False),
        ("/a.py", "sub/a.py", False),
        ("sub/a.py", "sub/a.py", True),
        ("# a.py", "a.py", False),
        ("[z-a]bad\n*.log", "a.log", True),
        ("A.py", "a.py", False),
    ],
)
def test_a_gitignore_is_read_as_git_reads_it(root, patterns, name, is_hidden):
    write(root / ".gitignore", patterns)
    expected = Reason.IGNORED_FILE if is_hidden else None
    assert HiddenFiles([root]).reason(root / name) is expected


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


def test_a_list_that_changes_is_read_again(root):
    files = HiddenFiles([root])
    assert files.reason(root / "a.py") is None
    write(root / ".gitignore", "a.py\n")
    assert files.reason(root / "a.py") is Reason.IGNORED_FILE
    (root / ".gitignore").unlink()
    assert files.reason(root / "a.py") is None


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
