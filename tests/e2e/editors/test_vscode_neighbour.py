"""VS Code with a second extension that offers ghost text of its own."""

import pytest

from tests.support import vscode_neighbour
from tests.support.editor_home import COMMAND
from tests.support.vscode import foregram_extension, workbench
from tests.support.vscode_server import code_server
from tests.support.vscode_sources import BODY

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.model,
    pytest.mark.editors,
    pytest.mark.timeout(400),  # the first start on a machine converts the model
]


def test_with_a_second_provider_both_are_offered_and_tab_takes_the_one_that_is_shown(
    environ, browser, tmp_path
):
    neighbour = vscode_neighbour.neighbour_extension(tmp_path)
    folder = tmp_path / "shop"
    folder.mkdir()
    settings = {"foregram.server.command": [str(COMMAND)]}
    with (
        code_server(environ, foregram_extension(), neighbour) as server,
        workbench(browser, server, settings) as both,
        both.window(folder) as window,
    ):
        window.wait_until_ready()
        window.open(BODY.write(folder))
        window.go_to(BODY.line, BODY.column)
        window.press("Enter")
        first = window.wait_for_ghost()
        window.press("Alt+]")
        window.until(lambda: window.ghost() not in ("", first.ghost), "the other one")
        second = window.wait_for_ghost()
        ghosts = {first.ghost.strip(), second.ghost.strip()}
        assert vscode_neighbour.TEXT in ghosts
        assert len(ghosts) == 2
        window.press("Tab")
        window.wait_for_document(second.preview)
        assert window.save() == second.preview
