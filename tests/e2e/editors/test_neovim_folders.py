"""Several projects in one Neovim: one server, and each project's own ignore file."""

import pytest

from tests.support.editor_home import COMMAND
from tests.support.neovim import neovim, setup_table

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.model,
    pytest.mark.editors,
    pytest.mark.timeout(400),  # the first start on a machine converts the model
]

SOURCE = "def total_price(items):\n    total = 0\n"
LOOP = "Gofor item in it"
REASONS = """
local keep = function(answers) _G.answers = answers end
require("foregram.questions").execute("foregram.why", nil, keep)
return vim.tbl_map(function(one) return one.file .. " " .. one.reason end, _G.answers or {})
"""


@pytest.fixture
def projects(tmp_path):
    """Two folders with the same files; the second one ignores its own `draft.py`."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        (folder / ".git").mkdir(parents=True)
        for name in ("draft.py", "shop.py"):
            (folder / name).write_text(SOURCE)
    (folders[1] / ".foregramignore").write_text("draft.py\n")
    return folders


@pytest.fixture(params=[("0.11", "auto"), ("0.12", "auto"), ("0.12", "own")], ids="-".join)
def editor(request, environ, tmp_path, projects):
    """Neovim on a file of the first project, in one version, with one way to draw."""
    version, ghost_text = request.param
    setup = setup_table({"cmd": [str(COMMAND), "lsp"], "ghost_text": ghost_text})
    file = projects[0] / "draft.py"
    before = "vim.o.hidden = true"
    with neovim(version, environ, tmp_path / "xdg", file, setup=setup, before=before) as editor:
        editor.until_ready()
        yield editor


def servers(editor) -> list[int]:
    """Processes that Neovim has started and that run."""
    return list(editor.lua("return vim.api.nvim_get_proc_children(vim.uv.os_getpid())"))


def test_two_projects_share_one_server_and_each_has_its_own_ignore_file(editor, projects):
    [server] = servers(editor)
    first, second = projects
    editor.type(LOOP)
    assert editor.until_ghost()
    # Accepted: the next file is completed in the manner of what is open, loops without end too.
    editor.type(f"<Tab><Esc>:edit {second}/draft.py<CR>{LOOP}")
    editor.until(lambda: "draft.py ignored_file" in " ".join(editor.lua(REASONS)), "the reason")
    assert not editor.ghost()
    editor.type(f"<Esc>:edit {second}/shop.py<CR>{LOOP}")
    assert editor.until_ghost()
    editor.type(f"<Tab><Esc>:edit {first}/shop.py<CR>{LOOP}")
    assert editor.until_ghost()
    assert servers(editor) == [server]
