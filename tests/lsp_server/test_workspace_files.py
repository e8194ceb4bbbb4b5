"""What a session asks the repository, and when it has one."""

from pathlib import Path

import pytest
from lsprotocol import types

from engine.host.protocol import Position
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.repository.cursor_view import Question
from lsp_server.settings import Settings
from lsp_server.workspace_files import RecentEdits, WorkspaceFiles
from tests.support.workspaces import nothing, workspace_of

WORK = Path("/work")


class Heard:
    """In the repository's place, it keeps what it is told."""

    def __init__(self, _on_progress: object) -> None:
        self.entered: list[tuple[Path, ...]] = []
        self.questions: list[Question] = []
        self.num_looks = 0
        heard.append(self)

    def enter(self, roots: tuple[Path, ...], _settings: Settings) -> None:
        self.entered.append(roots)

    def look(self) -> None:
        self.num_looks += 1

    async def shown(self, question: Question) -> tuple[()]:
        self.questions.append(question)
        return ()


heard: list[Heard] = []


@pytest.fixture
def files(monkeypatch):
    monkeypatch.setattr("lsp_server.repository.repository.Repository", Heard)
    heard.clear()
    return WorkspaceFiles(workspace_of(Documents()), nothing)


def chosen(*repository: str) -> Settings:
    return Settings(cache_folder=WORK, runtime_folder=WORK, repository=repository)


def enter(files: WorkspaceFiles, *repository: str) -> None:
    files._workspace.settings = chosen(*repository)
    files.enter([WORK])


async def test_there_is_none_before_the_client_is_ready_nor_where_it_is_off(files):
    enter(files, "on")
    assert heard == []
    enter(files, "off")
    await files.begin()
    assert heard == []
    enter(files, "on")
    enter(files, "off")
    assert heard[0].entered == [(WORK,), (WORK,)]


@pytest.mark.parametrize(
    ("listed", "globs"),
    [
        *(((), None), (("off",), None), (("off", "src/**"), None)),
        *((("on",), ()), (("src/**",), ("src/**",))),
    ],
)
def test_on_is_every_file_off_is_none_and_else_it_is_those_listed(listed, globs):
    assert chosen(*listed).repository_globs == globs


async def test_a_question_brings_the_lines_that_were_edited_elsewhere(files):
    documents = files._documents
    enter(files, "on")
    await files.begin()
    lines = "\n".join(["first = 1", *[""] * 50, "last = 2"])
    documents.open(types.TextDocumentItem("file:///work/a.py", "python", 1, lines))
    for version, row in ((2, 0), (3, 51)):
        at = types.Position(row, 0)
        change = types.TextDocumentContentChangePartial(range=types.Range(at, at), text="new_")
        documents.change("file:///work/a.py", version, [change])
        files.edited("file:///work/a.py", [change])
    document = documents.snapshot("file:///work/a.py")
    assert isinstance(document, Snapshot)
    await files.shown(Anchor.of(document, Position(51, 4)), is_quick=True)
    (question,) = heard[0].questions
    assert question.edits == ("new_first = 1",)
    assert (question.path, question.row, question.is_quick) == (WORK / "a.py", 51, True)


async def test_files_are_looked_at_where_the_client_does_not_watch_them(files):
    files.look()
    enter(files, "on")
    await files.begin()
    files.look()
    assert heard[0].num_looks == 1
    files.is_watched = True
    files.look()
    assert heard[0].num_looks == 1


def text(*lines: str, uri: str = "a") -> Snapshot:
    return Snapshot(uri, "python", 1, 1, lines, "\n")


def test_a_line_counts_once_as_it_is_now_and_blank_ones_do_not():
    edits = RecentEdits()
    for now in ("t", "to", "total = 1"):
        edits.note(text("", now), 1, 1)
    edits.note(text("", "total = 1", ""), 1, 2)
    assert edits.far_from("b", 0) == ("total = 1",)


def test_the_newest_comes_first_and_what_is_near_the_cursor_is_left_out():
    edits = RecentEdits()
    edits.note(text(*"abc"), 0, 1)
    edits.note(text(*"xyz", uri="b"), 2, 1)
    assert edits.far_from("c", 0) == ("z", "a")
    assert edits.far_from("b", 9) == ("a",)
    assert edits.far_from("b", 99) == ("z", "a")


def test_a_large_paste_leaves_its_last_lines():
    edits = RecentEdits()
    edits.note(text(*(f"line {n}" for n in range(100))), 0, 100)
    assert edits.far_from("b", 0) == tuple(f"line {n}" for n in range(99, 87, -1))
