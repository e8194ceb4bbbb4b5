"""The user's last edits, and none that a model may not see."""

import random
from dataclasses import dataclass, field

import pytest
from lsprotocol import types

from engine.edits.edit_prompt import EditedDocument
from engine.edits.past import lines_before_edits
from engine.request import EditTask, PastEdit
from lsp_server.documents.documents import Documents
from lsp_server.edits.history import EditHistory
from lsp_server.privacy.permissions import Permissions
from lsp_server.settings import Settings
from lsp_server.workspace import Workspace

SECRET = "id = 'AKIA" + "QRSTUVWX2345ABCD'"  # in two parts, lest a search for secrets finds it


@dataclass
class Typist:
    """Edits documents; the history sees each state, as when the person pauses."""

    workspace: Workspace
    now_s: float = 0.0
    history: EditHistory = field(init=False)

    def __post_init__(self):
        self.history = EditHistory(self.workspace, lambda: self.now_s)

    def open(self, uri, text):
        item = types.TextDocumentItem(uri, "python", 1, text)
        self.workspace.documents.open(item)
        self.history.follow(uri)

    def write(self, uri, text, after_s=1.0):
        """Let a document have a new text."""
        self.now_s += after_s
        self.workspace.documents.change(
            uri, 1, [types.TextDocumentContentChangeWholeDocument(text)]
        )
        self.history.follow(uri)

    @property
    def changes(self):
        return [(one.path, one.line, one.old, one.new) for one in self.history.past()]


@pytest.fixture
def typist(tmp_path):
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    settings = Settings(cache_folder=tmp_path, runtime_folder=tmp_path)
    permissions = Permissions([tmp_path], settings)
    workspace = Workspace(Documents(), settings, permissions, tmp_path.as_uri())
    return Typist(workspace)


def uri_of(typist, name):
    return f"{typist.workspace.root}/{name}"


def test_edits_are_told_across_files_in_the_order_in_which_they_were_made(typist):
    a, b = uri_of(typist, "a.py"), uri_of(typist, "lib/b.py")
    typist.open(a, "x = 1\ny = 2\n")
    typist.open(b, "import a\n")
    typist.write(a, "x = 3\ny = 2\n")
    typist.write(b, "import a as c\n")
    typist.write(a, "x = 3\ny = 4\n", after_s=60)
    assert typist.changes == [
        ("a.py", 0, ("x = 1",), ("x = 3",)),
        ("lib/b.py", 0, ("import a",), ("import a as c",)),
        ("a.py", 1, ("y = 2",), ("y = 4",)),
    ]


def test_edits_come_with_the_lines_around_them(typist):
    a = uri_of(typist, "a.py")
    typist.open(a, "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    typist.write(a, "1\n2\n3\n4\nx\n6\n7\n8\n9\n")
    typist.write(a, "0\n1\n2\n3\n4\nx\n6\n7\n8\n9\n", after_s=60)
    assert typist.history.past()[0] == PastEdit(
        "a.py", 4, ("5",), ("x",), ("2", "3", "4"), ("6", "7", "8")
    )


@pytest.mark.parametrize("name", [".env", "ignored.py", "id_rsa"])
def test_edits_of_hidden_files_are_not_told(typist, name):
    uri = uri_of(typist, name)
    typist.open(uri, "a\n")
    typist.write(uri, "b\n")
    assert typist.changes == []


def test_a_secret_is_never_told_neither_as_it_comes_nor_as_it_goes(typist):
    a = uri_of(typist, "a.py")
    typist.open(a, "x = 1\n")
    typist.write(a, "x = 2\n")
    assert typist.changes
    typist.write(a, f"x = 2\n{SECRET}\n")
    assert typist.changes == []
    typist.write(a, "x = 2\n")
    assert typist.changes == []
    typist.write(a, "x = 3\n")
    assert typist.changes == [("a.py", 0, ("x = 2",), ("x = 3",))]


def test_a_secret_of_the_first_text_is_not_told_as_it_goes(typist):
    a = uri_of(typist, "a.py")
    typist.open(a, f"{SECRET}\n")
    typist.write(a, "x = 1\n")
    typist.write(a, "x = 2\n")
    assert typist.changes == [("a.py", 0, ("x = 1",), ("x = 2",))]


def test_a_file_that_becomes_ignored_is_forgotten(typist, tmp_path):
    a = uri_of(typist, "a.py")
    typist.open(a, "x = 1\n")
    typist.write(a, "x = 2\n")
    assert typist.changes
    (tmp_path / ".gitignore").write_text("a.py\n")
    typist.workspace.permissions.outdate()
    assert typist.changes == []
    (tmp_path / ".gitignore").write_text("")
    assert typist.changes == []


def test_a_closed_document_is_forgotten_and_begins_anew(typist):
    a = uri_of(typist, "a.py")
    typist.open(a, "x = 1\n")
    typist.write(a, "x = 2\n")
    typist.workspace.documents.close(a)
    assert typist.changes == []
    typist.open(a, "x = 5\n")
    typist.open(a, "y = 5\n")
    assert typist.changes == []
    typist.write(a, "y = 6\n")
    assert typist.changes == [("a.py", 0, ("y = 5",), ("y = 6",))]


def test_the_newest_edits_are_kept_and_large_ones_are_none(typist):
    a, b = uri_of(typist, "a.py"), uri_of(typist, "b.py")
    typist.open(a, "\n")
    typist.open(b, "\n")
    for number in range(40):
        typist.write(a, f"x = {number}\n", after_s=60)
        typist.write(b, f"y = {number}\n", after_s=60)
    told = typist.changes
    assert len(told) == 32
    assert told[-1][3] == ("y = 39",)
    typist.write(b, "z = 1\n" * 2_000)
    assert {path for path, *_ in typist.changes} == {"a.py"}
    for number in range(9):
        typist.write(a, f"x = {str(number) * 1_900}\n", after_s=60)
    sizes = [sum(map(len, (*old, *new))) for _, _, old, new in typist.changes]
    assert sum(sizes) <= 16_000
    assert max(sizes) > 3_000


def test_a_long_run_of_typing_hides_neither_itself_nor_other_files(typist):
    a, b = uri_of(typist, "a.py"), uri_of(typist, "b.py")
    typist.open(a, "\n")
    typist.open(b, "x = 1\n")
    typist.write(b, "x = 2\n")
    lines = [f"name_{number:03} = compute({number:03})" for number in range(85 * 8)]
    for end in range(85, len(lines) + 1, 85):
        typist.write(a, "\n".join(lines[:end]), after_s=3)
        assert typist.changes[0][0] == "b.py"
        assert typist.changes[-1][3][-1] == lines[end - 1]


def test_a_document_that_no_model_edits_has_no_history(typist):
    a = uri_of(typist, "a.py")
    most = "\n" * 49_998
    typist.open(a, "x = 1\n" + most)
    typist.write(a, "x = 2\n" + most)
    assert typist.changes == [("a.py", 0, ("x = 1",), ("x = 2",))]
    typist.write(a, "x = 2\n\n" + most)
    typist.write(a, "x = 3\n\n" + most)
    assert typist.changes == []


@pytest.mark.parametrize("seed", range(20))
def test_a_format_finds_the_text_before_the_edits(typist, seed):
    """The rows are those at the time of each edit, so the edits can be undone one by one."""
    a, draw = uri_of(typist, "a.py"), random.Random(seed)  # noqa: S311 - a test draws
    first = lines = [f"line {number}" for number in range(12)]
    typist.open(a, "\n".join(lines))
    for number in range(9):
        lines = list(lines)
        place = draw.randrange(len(lines) + 1)
        written = [draw.choice(["x", "y 🙂", f"new {number}"]) for _ in range(draw.randrange(3))]
        lines[place : place + draw.randrange(3)] = written
        typist.write(a, "\n".join(lines or [""]), after_s=draw.choice([1, 60]))
    snapshot = typist.workspace.documents.snapshot(a)
    task = EditTask(history=typist.history.past())
    document = EditedDocument("a.py", snapshot.lines, 0, 0, task)
    assert lines_before_edits(document) == first
