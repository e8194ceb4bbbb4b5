"""VS Code with a window on a workspace of several folders."""

import json

import pytest

from lsp_server.reasons import Reason
from tests.support.editor_home import host_status
from tests.support.sources import LOOP


@pytest.fixture(scope="module")
def window(code, tmp_path_factory):
    """A window on the folders `books` and `toys`, which ignores its drafts."""
    shops = tmp_path_factory.mktemp("shops")
    for name in ("books", "toys"):
        (shops / name).mkdir()
        LOOP.write(shops / name, f"{name}.py")
        LOOP.write(shops / name, f"draft_{name}.py")
    (shops / "toys/.foregramignore").write_text("draft_*.py\n")
    workspace = shops / "shops.code-workspace"
    workspace.write_text(json.dumps({"folders": [{"path": "books"}, {"path": "toys"}]}))
    with code.window(workspace) as opened:
        opened.wait_until_ready()
        yield opened


@pytest.fixture(autouse=True)
def _nothing_open(window):
    window.close_all()


def put_caret(window, name):
    window.open(name)
    window.go_to(LOOP.line, LOOP.column)


def test_one_server_completes_in_files_of_all_folders(window, environ):
    others = host_status(environ)["numClients"]  # windows of other tests
    for name in ("books.py", "toys.py"):
        put_caret(window, name)
        window.type("total")
        seen = window.wait_for_ghost()
        window.press("Tab")
        window.wait_for_document(seen.preview)
    assert host_status(environ)["numClients"] <= others + 1


def test_the_ignore_file_of_one_folder_holds_for_this_folder_alone(window):
    put_caret(window, "draft_toys.py")
    watched = window.type_watched("total")
    assert watched.gaps == watched.frames
    window.wait_for_status("circle-slash", saying=Reason.IGNORED_FILE.sentence)
    put_caret(window, "draft_books.py")
    window.type("total")
    assert window.wait_for_ghost().ghost
    window.wait_until_ready()
