"""VS Code with a window on a workspace of several folders."""

import json

import pytest

from lsp_server.reasons import Reason
from tests.support.completion_hosts import host_status
from tests.support.vscode_sources import LOOP

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.model,
    pytest.mark.editors,
    pytest.mark.timeout(400),  # the first start on a machine converts the model
]


@pytest.fixture
def workspace(tmp_path):
    """The folders `books` and `toys`; the second one's drafts are ignored."""
    for name in ("books", "toys"):
        (tmp_path / name).mkdir()
        LOOP.write(tmp_path / name, f"{name}.py")
        LOOP.write(tmp_path / name, f"draft_{name}.py")
    (tmp_path / "toys/.foregramignore").write_text("draft_*.py\n")
    made = tmp_path / "shops.code-workspace"
    made.write_text(json.dumps({"folders": [{"path": "books"}, {"path": "toys"}]}))
    return made


def put_caret(window, name):
    window.open(name)
    window.go_to(LOOP.line, LOOP.column)


def test_one_server_completes_in_files_of_all_folders(code, workspace, environ):
    with code.window(workspace) as window:
        window.wait_until_ready()
        others = host_status(environ)["numClients"]  # windows of other tests
        for name in ("books.py", "toys.py"):
            put_caret(window, name)
            window.type("total")
            seen = window.wait_for_ghost()
            window.press("Tab")
            window.wait_for_document(seen.preview)
        assert host_status(environ)["numClients"] <= others + 1


def test_the_ignore_file_of_one_folder_holds_for_this_folder_alone(code, workspace):
    with code.window(workspace) as window:
        window.wait_until_ready()
        put_caret(window, "draft_toys.py")
        watched = window.type_watched("total")
        assert watched.gaps == watched.polls
        window.wait_for_status("circle-slash", saying=Reason.IGNORED_FILE.sentence)
        put_caret(window, "draft_books.py")
        window.type("total")
        assert window.wait_for_ghost().ghost
        window.wait_until_ready()
