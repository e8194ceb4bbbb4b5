"""What a session asks the indexes of its folders, and when it has any."""

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types

from engine.host.protocol import Position
from engine.request import Snippet
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.repository.cursor_view import CursorView
from lsp_server.settings import Settings
from lsp_server.workspace_files import RecentEdits, WorkspaceFiles
from tests.support.workspaces import nothing, workspace_of


class Heard:
    """In an index's place, it keeps what it is told."""

    def __init__(self, folder: Path, *_: object) -> None:
        self.folder = folder
        self.views: list[CursorView] = []
        self.num_looks = 0
        self.is_closed = self.is_late = False
        self.trouble = ""
        self.updates = self
        heard.append(self)

    def look(self) -> None:
        self.num_looks += 1

    def close(self) -> None:
        self.is_closed = True

    async def shown(self, _uri: str, view: CursorView, **_: object) -> tuple[Snippet, ...]:
        self.views.append(view)
        await asyncio.sleep(0)
        return FOUND


heard: list[Heard] = []
FOUND = (Snippet("store.py", "def load_order(): ...\n"),)


@pytest.fixture
def files(monkeypatch):
    monkeypatch.setattr("lsp_server.repository.folder_index.FolderIndex", Heard)
    heard.clear()
    return WorkspaceFiles(workspace_of(Documents()), nothing)


def chosen(*repository: str) -> Settings:
    return Settings(cache_folder=Path("/c"), runtime_folder=Path("/c"), repository=repository)


def enter(files: WorkspaceFiles, folder: Path, *repository: str) -> None:
    files._workspace.settings = chosen(*repository)
    files.enter([folder])


def place(files: WorkspaceFiles, file: Path, text: str, row: int, character: int) -> Anchor:
    """A cursor in a file that the editor opens."""
    files._documents.open(types.TextDocumentItem(file.as_uri(), "python", 1, text))
    document = files._documents.snapshot(file.as_uri())
    assert isinstance(document, Snapshot)
    return Anchor.of(document, Position(row, character))


async def test_there_is_none_before_the_client_is_ready_nor_where_it_is_off(files, tmp_path):
    enter(files, tmp_path, "on")
    assert heard == []
    enter(files, tmp_path, "off")
    await files.begin()
    assert heard == []
    enter(files, tmp_path, "on")
    enter(files, tmp_path, "on")
    assert [(one.folder, one.is_closed) for one in heard] == [(tmp_path, False)]
    enter(files, tmp_path, "off")
    assert [one.is_closed for one in heard] == [True]


@pytest.mark.parametrize(
    ("listed", "globs"),
    [
        *(((), None), (("off",), None), (("off", "src/**"), None)),
        *((("on",), ()), (("src/**",), ("src/**",))),
    ],
)
def test_on_is_every_file_off_is_none_and_else_it_is_those_listed(listed, globs):
    assert chosen(*listed).repository_globs == globs


async def test_a_question_brings_the_lines_that_were_edited_elsewhere(files, tmp_path):
    enter(files, tmp_path, "on")
    await files.begin()
    uri = (tmp_path / "a.py").as_uri()
    place(files, tmp_path / "a.py", "\n".join(["first = 1", *[""] * 50, "last = 2"]), 0, 0)
    for version, row in ((2, 0), (3, 51)):
        at = types.Position(row, 0)
        change = types.TextDocumentContentChangePartial(range=types.Range(at, at), text="new_")
        files._documents.change(uri, version, [change])
        files.edited(uri, [change])
    document = files._documents.snapshot(uri)
    assert isinstance(document, Snapshot)
    await files.shown(Anchor.of(document, Position(51, 4)), is_quick=True)
    (view,) = heard[0].views
    assert (view.edits, view.path, *view.opened) == (("new_first = 1",), "a.py", "a.py")
    assert (view.before[0], view.before[51:], view.behind) == (
        "new_first = 1",
        ["new_"],
        ["last = 2"],
    )


async def test_files_are_looked_at_where_the_client_does_not_watch_them(files, tmp_path):
    files.look()
    enter(files, tmp_path, "on")
    await files.begin()
    files.look()
    assert heard[0].num_looks == 1
    files.is_watched = True
    files.look()
    assert heard[0].num_looks == 1


async def test_what_is_found_in_a_folder_that_is_left_meanwhile_is_not_sent(files, tmp_path):
    await files.begin()
    enter(files, tmp_path, "on")
    anchor = place(files, tmp_path / "cart.py", "x", 0, 1)
    assert await files.shown(anchor, is_quick=True) == FOUND
    shown = asyncio.create_task(files.shown(anchor, is_quick=True))
    await asyncio.sleep(0)  # it has been asked
    enter(files, tmp_path, "off")
    assert await shown == ()
    enter(files, tmp_path, "on")
    elsewhere = place(files, tmp_path.parent / "cart.py", "x", 0, 1)
    assert await files.shown(elsewhere, is_quick=True) == ()


async def test_a_late_answer_is_told_until_the_next_one_of_any_folder(files, tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    files._workspace.settings = chosen("on")
    files.enter(folders)
    await files.begin()
    told = []
    for name, is_late in (("a", True), ("b", False)):
        (index,) = (one for one in heard if one.folder.name == name)
        index.is_late = is_late
        await files.shown(place(files, tmp_path / name / "cart.py", "x", 0, 1), is_quick=True)
        told.append(files.trouble)
    assert told == ["no answer came in time", ""]
    heard[0].trouble = "the index is damaged"
    assert files.trouble == "the index is damaged"


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
