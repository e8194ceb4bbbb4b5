"""Where git's work trees begin: the lists from there down say what is ignored."""

import os

import pytest

from lsp_server.privacy import work_trees
from lsp_server.privacy.hidden_files import HiddenFiles
from lsp_server.privacy.work_trees import work_tree_of
from lsp_server.reasons import Reason


@pytest.fixture
def top(tmp_path):
    top = tmp_path / "top"
    (top / ".git/info").mkdir(parents=True)
    (top / "backend").mkdir()
    return top


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    work_trees._homes.cache_clear()
    yield tmp_path
    work_trees._homes.cache_clear()


def names(file, folder) -> None:
    """Make a `.git` that is a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"gitdir: {folder}\n")


def test_lists_above_a_workspace_in_a_work_tree_count(top):
    (top / ".gitignore").write_text("local_settings.py\n/tools\n")
    files = HiddenFiles([top / "backend"])
    assert files.reason(top / "backend/local_settings.py") is Reason.IGNORED_FILE
    assert files.hides_folder(top / "backend/tools") is False
    assert files.reason(top / "backend/main.py") is None
    (top / ".gitignore").write_text("/backend/generated/\n")
    assert files.hides_folder(top / "backend/generated")
    assert files.reason(top / "backend/local_settings.py") is None


def test_a_file_beside_the_workspace_is_judged_by_its_own_work_tree(top):
    (top / ".gitignore").write_text("local_settings.py\n")
    assert HiddenFiles([]).reason(top / "backend/local_settings.py") is Reason.IGNORED_FILE
    assert HiddenFiles([]).reason(top / "backend/main.py") is None


def test_the_list_that_is_never_committed_counts_and_others_overrule_it(top):
    (top / ".git/info/exclude").write_text("*.local.py\n")
    files = HiddenFiles([top / "backend"])
    assert files.reason(top / "backend/a.local.py") is Reason.IGNORED_FILE
    (top / ".gitignore").write_text("!a.local.py\n")
    assert files.reason(top / "backend/a.local.py") is None
    assert files.reason(top / "backend/b.local.py") is Reason.IGNORED_FILE


def test_in_a_folder_of_repositories_each_has_its_own(top):
    (top / ".git/info/exclude").write_text("mine.py\n")
    files = HiddenFiles([top.parent])
    assert files.reason(top / "backend/mine.py") is Reason.IGNORED_FILE
    assert files.reason(top.parent / "mine.py") is None


def test_a_submodule_and_a_second_work_tree_have_the_list_of_their_repository(top):
    modules, trees = top / ".git/modules/sub", top / ".git/worktrees/second"
    for folder in (modules / "info", trees):
        folder.mkdir(parents=True)
    names(top / "sub/.git", "../.git/modules/sub")
    names(top.parent / "second/.git", trees)
    (trees / "commondir").write_text("../..\n")
    (modules / "info/exclude").write_text("of_sub.py\n")
    (top / ".git/info/exclude").write_text("of_top.py\n")
    files = HiddenFiles([top / "sub", top.parent / "second"])
    assert files.reason(top / "sub/of_sub.py") is Reason.IGNORED_FILE
    assert files.reason(top / "sub/of_top.py") is None
    assert files.reason(top.parent / "second/of_top.py") is Reason.IGNORED_FILE
    assert files.reason(top.parent / "second/of_sub.py") is None


def test_a_workspace_that_is_ignored_itself_is_judged_by_its_own_lists(top):
    (top / ".gitignore").write_text("/backend/\nmain.py\n")
    files = HiddenFiles([top / "backend"])
    assert files.reason(top / "backend/main.py") is None
    (top / "backend/.gitignore").write_text("main.py\n")
    assert files.reason(top / "backend/main.py") is Reason.IGNORED_FILE


@pytest.mark.parametrize("inner", ["projects/shop", "."])
def test_a_home_folder_in_a_repository_hides_nothing_of_the_projects_in_it(home, inner):
    (home / ".git/info").mkdir(parents=True)
    (home / ".git/info/exclude").write_text("*\n")
    (home / "projects/shop").mkdir(parents=True)
    (home / "projects/.gitignore").write_text("*\n")
    assert HiddenFiles([home / inner]).reason(home / inner / "main.py") is None
    assert HiddenFiles([]).reason(home / "main.py") is None
    assert work_tree_of(home / "projects/shop") is None


def test_a_repository_in_the_home_folder_is_one(home, top):
    (top / ".gitignore").write_text("a.py\n")
    assert HiddenFiles([top / "backend"]).reason(top / "backend/a.py") is Reason.IGNORED_FILE


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(os.mkfifo, id="a pipe"),
        pytest.param(lambda file: file.symlink_to("/dev/zero"), id="an endless device"),
        pytest.param(lambda file: file.symlink_to(file.name), id="a circle"),
        pytest.param(lambda file: file.write_text(""), id="an empty file"),
        pytest.param(lambda file: file.write_bytes(b"\xff\0" * 99_999), id="no text"),
    ],
)
def test_what_is_no_git_folder_begins_no_work_tree(top, make):
    make(top / "backend/.git")
    (top / ".gitignore").write_text("a.py\n")
    assert work_tree_of(top / "backend") == top
    assert HiddenFiles([top / "backend"]).reason(top / "backend/a.py") is Reason.IGNORED_FILE


@pytest.mark.parametrize("named", ["/dev/zero", "a\0b", "../" * 3_000, "no such folder"])
def test_a_git_folder_that_is_nowhere_hides_nothing(top, named):
    names(top / "backend/.git", named)
    assert HiddenFiles([top / "backend"]).reason(top / "backend/a.py") is None


def test_a_list_of_megabytes_hides_all_and_one_that_its_user_linked_is_read(top):
    files, exclude = HiddenFiles([top]), top / ".git/info/exclude"
    exclude.write_text("a" * 4_000_000)
    assert files.reason(top / "a.py") is Reason.UNCLEAR_IGNORE_FILE
    exclude.unlink()
    (top.parent / "mine").write_text("a.py\n")
    exclude.symlink_to(top.parent / "mine")
    assert files.reason(top / "a.py") is Reason.IGNORED_FILE
    assert files.reason(top / "b.py") is None
    exclude.unlink()
    exclude.symlink_to("/dev/zero")
    assert files.reason(top / "b.py") is Reason.UNCLEAR_IGNORE_FILE


@pytest.mark.parametrize(
    ("file", "text", "excludes"),
    [
        (".config/git/ignore", "a.py\n", None),
        ("xdg/git/ignore", "a.py\n", None),
        (".gitconfig", "[core]\n\texcludesFile = ~/mine # of all\n", "mine"),
        (".gitconfig", '[Core] excludesfile = "~/my \\"list\\""\n', 'my "list"'),
        (".config/git/config", "[core]\n; a\nexcludesFile=~/mine", "mine"),
        ("xdg/git/config", "[include]\n\tpath = ../more\n", "mine"),
        ("top/.git/config", "[core]\n\texcludesFile = ../mine\n", "mine"),
    ],
)
def test_what_its_user_ignores_everywhere_is_ignored(home, top, monkeypatch, file, text, excludes):
    if file.startswith("xdg"):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    (home / file).parent.mkdir(parents=True, exist_ok=True)
    (home / file).write_text(text)
    (home / "xdg").mkdir(exist_ok=True)
    (home / "xdg/more").write_text("[core]\n\texcludesFile = ~/mine\n")
    if excludes:
        (home / excludes).write_text("a.py\n")
    files = HiddenFiles([top / "backend"])
    assert files.reason(top / "backend/a.py") is Reason.IGNORED_FILE
    assert files.reason(top / "backend/b.py") is None
    (top / ".gitignore").write_text("!a.py\n")
    assert files.reason(top / "backend/a.py") is None


def test_case_matters_unless_the_repository_says_otherwise(top):
    (top / ".gitignore").write_text("Secret.py\nDATA/\n")
    files = HiddenFiles([top / "backend"])
    assert files.reason(top / "backend/secret.PY") is None
    (top / ".git/config").write_text("[core]\n\tignorecase = true\n")
    assert files.reason(top / "backend/secret.PY") is Reason.IGNORED_FILE
    assert files.hides_folder(top / "backend/Data")


def test_a_home_folder_that_ignores_all_that_it_does_not_track_hides_nothing(home):
    (home / ".git").mkdir()
    (home / ".gitignore").write_text("*\n")
    (home / "notes").mkdir()
    for roots in ([], [home], [home / "notes"]):
        assert HiddenFiles(roots).reason(home / "notes/a.py") is None
    (home / ".foregramignore").write_text("b.py\n")
    assert HiddenFiles([home]).reason(home / "notes/b.py") is Reason.IGNORED_FILE
