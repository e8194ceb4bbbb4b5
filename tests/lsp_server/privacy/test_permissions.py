"""What may be completed, and what may leave the editor."""

import asyncio
import os
import time
from collections import Counter
from threading import current_thread, main_thread

import pytest

from lsp_server.documents.document import Snapshot
from lsp_server.privacy import secret_texts
from lsp_server.privacy.permissions import Permissions
from lsp_server.reasons import Reason
from lsp_server.settings import Settings

pytestmark = pytest.mark.anyio

AWS = "AKIA" + "QRSTUVWX2345ABCD"
KEY = ("# how to make one", "-----BEGIN OPENSSH PRIVATE KEY-----", "b3BlbnNzaC1rZXktdjEAAAAA")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop"


def permissions(*roots, **settings) -> Permissions:
    folders = {"cache_folder": roots[0], "runtime_folder": roots[0]}
    return Permissions(roots, Settings(**folders | settings))


def document(uri: str, *lines: str, language: str = "python") -> Snapshot:
    return Snapshot(uri, language, 1, 1, lines or ("x = 1",), "\n")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a.py", None),
        (".env", Reason.SECRET_FILE),
        (".env.example", None),
        ("keys/server.pem", Reason.SECRET_FILE),
        (".ssh/config", Reason.SECRET_FILE),
        ("build/a.py", Reason.IGNORED_FILE),
        ("draft.py", Reason.IGNORED_FILE),
    ],
)
def test_what_is_hidden_is_neither_completed_nor_sent(root, name, reason):
    (root / ".gitignore").write_text("build/\n")
    (root / ".foregramignore").write_text("draft.py\n")
    judge = permissions(root, allow_secret_files=(".env.example",))
    one = document(f"file://{root}/{name}")
    assert judge.refusal(one) is reason
    assert judge.may_send(one) is (reason is None)


UNCLEAR = [  # names, which an editor may have encoded or not
    *("%2Eenv", "a/../.env", "notes;.env", "a;b/.env", "a b/%23/.env"),
    *("C#/.env", "what?/.env", "C#/.ssh/a.py", "a?b#c/server.pem", "100%/.env", "%ZZ/.env"),
    *("%2Eenv#a", ".env#L1", ".env?a=b", "x/..%2F.env", "a\\.env", ".env%00.py", "server.pem."),
    *("C#/id_rsa#L1.py", "what?/C#/id_rsa?ref=~", "C#/id_rsa%00#.py"),
]
SCHEMES = ["file://", "fugitive://", "untitled:", "file://localhost", "FILE:"]


@pytest.mark.parametrize(
    "uri",
    [
        *(f"{scheme}ROOT/{name}" for scheme in SCHEMES for name in UNCLEAR),
        "vscode-notebook-cell:ROOT/.ssh/a.ipynb#W0sZmlsZQ%3D%3D",
        "vscode-notebook-cell://ssh-remote%2Bbig/ROOT/.ssh/a.ipynb#W0s",
        "untitled:.env",
        "git:ROOT/.env?%7B%22ref%22%3A%22HEAD%22%7D",
        "fugitive://ROOT/.git//0123abcd/.env",
        "file://[no-address/.env",
        "file:///c%3A/Users/ada/.env",
        "file:///C:/ada/.env",
        "file://server/share/.env",
        "file:///C:%5Cada%5C.env",
    ],
)
def test_a_secret_file_is_secret_under_any_address(root, uri):
    judge = permissions(root)
    assert judge.refusal(document(uri.replace("ROOT", str(root)))) is Reason.SECRET_FILE


@pytest.mark.parametrize("name", ["C#/a.py", "what?/a.py", "100%/a.py", "C%23/a.py", "a#b?c.py"])
def test_a_name_with_signs_of_addresses_works_and_is_subject_to_its_lists(root, name):
    judge = permissions(root)
    assert judge.refusal(document(f"file://{root}/{name}")) is None
    assert judge.path_of(f"file://{root}/{name}") == name.replace("%23", "#")
    (root / ".gitignore").write_text(f"{name.replace('%23', '#').replace('?', '[?]')}\n")
    ignored = permissions(root).refusal(document(f"file://{root}/{name}"))
    assert ignored is Reason.IGNORED_FILE


def test_a_private_key_in_the_text_hides_a_file_of_any_name(root):
    judge = permissions(root)
    uri = f"file://{root}/a.py"
    assert judge.refusal(document(uri)) is None
    assert judge.refusal(document(uri, *KEY)) is Reason.SECRET_FILE
    assert not judge.may_send(document("untitled:Untitled-1", *KEY))
    assert judge.refusal(document(uri)) is None  # it was taken out again


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "file://ROOT/notes.py"])
def test_the_line_of_a_secret_is_told(root, uri):
    judge = permissions(root)
    pasted = document(uri.replace("ROOT", str(root)), "# for later", "", f"k = {AWS}")
    assert judge.refusal(pasted) is Reason.SECRET_FILE
    assert judge.secret(pasted) == (2, "an AWS access key")


def test_a_text_that_looks_secret_can_be_allowed_by_its_files_name(root):
    judge = permissions(root, allow_secret_files=("fixtures/",))
    (root / "link.py").symlink_to(root / "fixtures/a.py")
    assert judge.refusal(document(f"file://{root}/fixtures/a.py", *KEY)) is None
    assert judge.refusal(document(f"file://{root}/a.py", *KEY)) is Reason.SECRET_FILE
    assert judge.refusal(document(f"file://{root}/link.py", *KEY)) is Reason.SECRET_FILE


def test_a_text_is_looked_through_once(root, monkeypatch):
    looked: list[str] = []
    find = secret_texts.secrets_in

    def looking(text):
        looked.append(text)
        return find(text)

    monkeypatch.setattr(secret_texts, "secrets_in", looking)
    judge = permissions(root)
    plain = document(f"file://{root}/a.py")
    for _ in range(3):
        assert judge.may_send(plain)
    assert looked == ["x = 1"]
    judge.forget(plain.uri)
    judge.forget("file:///never/opened.py")
    assert judge.may_send(plain)
    assert len(looked) == 2


@pytest.fixture
def calls(monkeypatch):
    """Each call to the file system takes a millisecond; its thread and its place are noted."""
    noted: list[tuple[bool, str]] = []

    def slow(call):
        def slowed(place, *more, **others):
            noted.append((current_thread() is main_thread(), str(place)))
            time.sleep(0.001)  # the disk itself
            return call(place, *more, **others)

        return slowed

    for name in ("stat", "lstat", "open"):
        monkeypatch.setattr(os, name, slow(getattr(os, name)))
    return noted


def in_deep_folders(root, count: int) -> list[Snapshot]:
    (root / "a/b/c/d").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("ignored_*\n")
    return [document(f"file://{root}/a/b/c/d/{number}.py") for number in range(count)]


async def test_a_slow_disk_is_looked_at_once_and_beside_the_event_loop(root, calls):
    judge, documents = permissions(root), in_deep_folders(root, 10)
    calls.clear()
    await judge.look(documents)
    assert not any(on_loop for on_loop, _ in calls)
    assert len(calls) < 100  # of ten documents; ten times 42 where each is looked at alone
    assert max(Counter(calls).values()) <= 4  # what a link on the way leads to is asked apart
    calls.clear()
    for _ in range(20):  # keys
        await judge.look(documents)
        assert all(judge.may_send(one) and judge.refusal(one) is None for one in documents)
    assert calls == []


async def test_what_a_slow_disk_said_counts_until_a_list_changes_or_some_time_went_by(root, calls):
    judge, documents = permissions(root), in_deep_folders(root, 2)
    await judge.look(documents)
    (root / ".gitignore").write_text("0.py\n")
    assert judge.refusal(documents[0]) is None
    judge.outdate()
    await judge.look(documents)
    assert judge.refusal(documents[0]) is Reason.IGNORED_FILE
    (root / ".gitignore").write_text("")
    while judge.refusal(documents[0]) is not None:  # no later than after twenty times its cost
        await judge.look(documents)
        await asyncio.sleep(0)
    calls.clear()
    await judge.look(documents)
    judge.refusal(documents[0])
    assert calls == []


async def test_a_quick_disk_is_asked_at_each_judgement(root):
    judge, plain = permissions(root), document(f"file://{root}/a.py")
    await judge.look([plain])
    assert judge.refusal(plain) is None
    (root / ".gitignore").write_text("a.py\n")
    assert judge.refusal(plain) is Reason.IGNORED_FILE


async def test_the_event_loop_is_free_while_a_long_text_is_searched(root):
    lines = (*(f"value_{number} = compute({number})  # a token" for number in range(200_000)), *KEY)
    judge, long = permissions(root), document(f"file://{root}/a.py", *lines)
    gaps, looking = [0.0], asyncio.ensure_future(judge.look([long]))
    while not looking.done():
        began = time.process_time()  # what others do on this computer does not count
        await asyncio.sleep(0)
        gaps.append(time.process_time() - began)
    began = time.monotonic()
    assert judge.refusal(long) is Reason.SECRET_FILE
    assert time.monotonic() - began < 0.05
    assert max(gaps) < sum(gaps) / 4  # a wait of all would be one for one search of all


def test_completion_can_be_switched_off_and_the_text_may_still_help(root):
    judge = permissions(root, enable=False)
    plain = document(f"file://{root}/a.py")
    assert judge.refusal(plain) is Reason.DISABLED
    assert judge.may_send(plain)


@pytest.mark.parametrize(
    ("language", "is_on"), [("markdown", False), ("python", True), ("zig", True)]
)
def test_languages_are_switched_off_one_by_one(root, language, is_on):
    judge = permissions(root, languages={"markdown": False, "python": True})
    refusal = judge.refusal(document(f"file://{root}/a", language=language))
    assert refusal is (None if is_on else Reason.DISABLED_LANGUAGE)


@pytest.mark.parametrize(
    ("uri", "is_disabled"),
    [
        ("file://ROOT/vendor/a.py", True),
        ("file://ROOT/lib/vendor/a.py", False),
        ("file://ROOT/docs/deep/a.md", True),
        ("file:///elsewhere/vendor/a.md", True),  # outside of the workspace the name tells
        ("file:///elsewhere/vendor/a.py", False),
        ("untitled:Untitled-1.md", True),
    ],
)
def test_files_are_switched_off_by_globs_within_the_workspace(root, uri, is_disabled):
    judge = permissions(root, disabled_globs=("/vendor/**", "[z-a]bad", "*.md"))
    expected = Reason.DISABLED_FILE if is_disabled else None
    assert judge.refusal(document(uri.replace("ROOT", str(root)))) is expected


def test_a_cell_is_ignored_with_its_notebook(root):
    (root / ".gitignore").write_text("scratch.ipynb\n")
    cell = document(f"vscode-notebook-cell:{root}/scratch.ipynb#W0sZmlsZQ%3D%3D")
    assert permissions(root).refusal(cell) is Reason.IGNORED_FILE


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "file://", "untitled:", "", "output:a-1"])
def test_a_text_that_is_no_file_is_completed(root, uri):
    (root / ".gitignore").write_text("*\n")
    assert permissions(root).refusal(document(uri)) is None


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file://ROOT/a.py", "a.py"),
        ("file://ROOT/deep/down/a%20b.py", "deep/down/a b.py"),
        ("file://ROOT/inner/src/a.py", "src/a.py"),
        ("file://ROOT/deep/../a.py", "a.py"),
        ("file://ROOT/../ROOTLESS/a.py", "a.py"),
        ("file:///home/ada/private/a.py", "a.py"),
        ("vscode-notebook-cell:ROOT/n.ipynb#W0s", "n.ipynb"),
        ("git:ROOT/deep/a.py?%7B%22path%22%3A%22x/y%22%7D", "deep/a.py"),
        ("untitled:Untitled-1", "Untitled-1"),
        ("untitled:", "untitled:"),
        ("", ""),
    ],
)
def test_the_host_hears_of_no_folder_outside_of_the_workspace(root, uri, path):
    judge = permissions(root, root / "inner")
    assert judge.path_of(uri.replace("ROOT", str(root))) == path


async def test_a_long_text_is_hidden_until_it_was_searched_beside_the_event_loop(root):
    """A text of 20 MB was searched for 0.8 s, in which no other document was answered."""
    lines = ("def f(a, b): return [a, {b: (a, b)}]",) * 50_000
    judge, plain = permissions(root), document(f"file://{root}/a.py", *lines)
    assert judge.refusal(plain) is Reason.UNREAD
    assert not judge.may_send(plain)
    await judge.look([plain])
    assert judge.refusal(plain) is None
    secret = document(f"file://{root}/b.py", *lines, *KEY)
    await judge.look([plain, secret])
    assert judge.refusal(secret) is Reason.SECRET_FILE
