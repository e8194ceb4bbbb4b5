"""The plugin in real Neovim, with the real server and the offline model."""

import os
import signal
import time

import pytest

from tests.support.editor_home import host_status
from tests.support.neovim import ALL_WAYS, LIMIT_S, WAYS
from tests.support.polling import until
from tests.support.served_host import secret_file
from tests.support.sources import BEGUN

PLAIN = "def total_price(items):\n    total = 0\n"
LOOP = "Gofor item in it"  # begins a loop whose completion has several lines
NEW = "Go<C-u><CR><CR>def "  # a function without a hint, so that candidates differ
TYPED = BEGUN + "    for item in it"
KEY_S = 0.08  # seconds between a person's keys
REST_S = 1.0  # seconds, long enough for any answer


DRAWN = pytest.mark.parametrize("start_neovim", WAYS, indirect=True, ids="-".join)
DRAWN_IN_ALL = pytest.mark.parametrize("start_neovim", ALL_WAYS, indirect=True, ids="-".join)


@pytest.fixture
def start(environ, start_neovim, tmp_path):
    (tmp_path / "shop.py").write_text(BEGUN)

    def started(file=tmp_path / "shop.py", before="", home=environ, **options):
        return start_neovim(home, file, before=before, **options)

    return started


@pytest.fixture
def editor(start):
    editor = start()
    editor.until_ready()
    return editor


def record_messages(editor):
    editor.lua("""
        _G.sent = {}
        local rpc = require("foregram.client").get().rpc
        local notify = rpc.notify
        rpc.notify = function(method, params)
          table.insert(_G.sent, { method, params or vim.empty_dict() })
          return notify(method, params)
        end
    """)


def sent(editor, method):
    return [params for name, params in editor.lua("return _G.sent") if name == method]


@DRAWN_IN_ALL
def test_tab_accepts_what_is_shown_as_one_undo_step_and_the_file_is_saved(editor, tmp_path):
    editor.type(LOOP)
    ghost = editor.settled_ghost()
    assert "\n" in ghost
    editor.type("<Tab>")
    editor.until_text(TYPED + ghost)
    editor.type(" # so<Esc>")
    editor.until_text(TYPED + ghost + " # so")
    editor.type("u")
    editor.until_text(TYPED + ghost)
    editor.type("u")
    editor.until_text(TYPED)
    editor.type("<C-r>:w<CR>")
    until(lambda: (tmp_path / "shop.py").read_text() != BEGUN, "the saved file")
    assert (tmp_path / "shop.py").read_text() == TYPED + ghost + "\n"


@DRAWN_IN_ALL
def test_the_ghost_text_stays_while_one_types_along(editor):
    editor.type(LOOP)
    ghost = editor.settled_ghost()
    line = ghost.split("\n")[0]
    assert len(line) >= 3
    editor.watch(TYPED + ghost)
    began = time.monotonic()
    # Pause within the line and at its end: Neovim 0.12 asks only in a pause.
    for part in (line[:2], line[2:-1]):
        for key in part:
            editor.type(key)
            time.sleep(KEY_S)
        time.sleep(REST_S)
    seen, took_s = editor.watched(), time.monotonic() - began
    assert (seen.gaps, seen.others) == ([], [])
    assert seen.num_answers >= 2
    assert seen.num_looks > 20 * took_s, "a look in 50 ms, of one in 20 ms without other work"
    assert editor.view() == (TYPED + line[:-1], ghost[len(line) - 1 :])


@DRAWN
def test_ghost_text_that_no_longer_fits_is_gone_at_once(editor):
    editor.type(LOOP)
    assert not editor.settled_ghost().startswith("Z")
    editor.type("Z")
    editor.until(lambda: editor.text() == TYPED + "Z", "the key")
    view = editor.view()
    assert not view.ghost or view.before == TYPED + "Z"
    assert not view.ghost.startswith("ems")


@DRAWN
def test_tab_right_after_a_key_leaves_no_strays(editor):
    editor.type(LOOP)
    ghost = editor.settled_ghost()
    editor.type(ghost[:2] + "<Tab>")
    editor.until_text(TYPED + ghost)


@DRAWN
def test_a_word_and_a_line_are_accepted_and_the_rest_stays(editor):
    record_messages(editor)
    editor.type(LOOP)
    ghost, accepted = editor.settled_ghost(), []
    for key in ("<C-Right>", "<C-Down>", "<C-Down>"):
        former = editor.view()
        editor.type(key)
        editor.until(lambda former=former: editor.view().before != former.before, "the part")
        view = editor.view()
        assert view.before + view.ghost == TYPED + ghost
        accepted.append(len(view.before) - len(TYPED))
    told = sent(editor, "textDocument/didPartiallyAcceptCompletion")
    assert [accepted_of(ghost, params) for params in told] == [
        length for length in accepted if length < len(ghost)
    ]
    assert sent(editor, "textDocument/didShowCompletion")
    editor.type("<Esc>u<Esc>u<Esc>u")
    editor.until_text(TYPED)


def accepted_of(ghost, params):
    """Return the accepted length of the ghost text; newer items begin with its rest."""
    left_before = len(params["item"]["insertText"])
    return len(ghost) - left_before + params["acceptedLength"]


@DRAWN
def test_another_candidate_and_the_first_again(editor):
    editor.type(NEW)
    first = editor.settled_ghost()
    editor.type("<M-]>")
    editor.until(lambda: editor.ghost() not in ("", first) or editor.said(), "another candidate")
    other = editor.ghost()
    assert other != first, editor.story()
    editor.type("<M-[>")
    editor.until(lambda: editor.ghost() == first, "the first candidate")
    editor.type("<M-]><Tab>")
    editor.until_text(BEGUN + "\n\ndef " + other)


@DRAWN
def test_dismissed_ghost_text_stays_away_until_the_next_key_or_until_it_is_asked_for(editor):
    editor.type(LOOP)
    ghost = editor.settled_ghost()
    editor.type("<C-]>")
    editor.until_no_ghost()
    assert editor.text() == TYPED
    editor.type(ghost[0])
    assert editor.until_ghost() == ghost[1:]
    editor.type("<C-]>")
    editor.until_no_ghost()
    editor.type("<M-\\>")
    editor.until_ghost()


def test_a_language_is_switched_off_and_on(editor):
    editor.type(":Foregram disable python<CR>" + LOOP)
    editor.until(lambda: editor.state()["kind"] == "Inactive", "the state")
    assert "Off for" in editor.state()["message"]
    assert editor.lua("return require('foregram').status()") == "foregram: off"
    assert not editor.ghost()
    editor.type("<Esc>:Foregram why<CR>")
    editor.until(lambda: "Off for" in editor.text(), "the reason")
    editor.type("q:Foregram toggle python<CR>ae")
    editor.until_ghost()
    assert editor.said() == [
        "foregram: Suggestions in python are off",
        "foregram: Suggestions in python are on",
    ]


def test_a_host_that_was_killed_comes_back(editor, environ):
    former = host_status(environ)["pid"]
    os.kill(former, signal.SIGKILL)
    editor.type(LOOP)
    editor.until_ghost()
    until(lambda: host_status(environ).get("pid", former) != former, "a new host", limit_s=LIMIT_S)
    assert not editor.said()


REASONS = """
local keep = function(answers) _G.answers = answers end
require("foregram.questions").execute("foregram.why", nil, keep)
return vim.tbl_map(function(one) return one.file .. " " .. one.reason end, _G.answers or {})
"""


def servers(editor) -> list[int]:
    return list(editor.lua("return vim.api.nvim_get_proc_children(vim.uv.os_getpid())"))


def test_two_projects_share_one_server_and_each_has_its_own_ignore_file(start, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / ".git").mkdir(parents=True)
        for name in ("draft.py", "shop.py"):
            (folder / name).write_text(PLAIN)
    (second / ".foregramignore").write_text("draft.py\n")
    editor = start(first / "draft.py", before="vim.o.hidden = true")
    editor.until_ready()
    [server] = servers(editor)
    editor.type(LOOP)
    assert editor.until_ghost()
    # The loop is accepted, since the model imitates an unfinished one in the next file.
    editor.type(f"<Tab><Esc>:edit {second}/draft.py<CR>{LOOP}")
    editor.until(lambda: "draft.py ignored_file" in " ".join(editor.lua(REASONS)), "the reason")
    assert not editor.ghost()
    editor.type(f"<Esc>:edit {second}/shop.py<CR>{LOOP}")
    assert editor.until_ghost()
    assert servers(editor) == [server]


def test_a_host_elsewhere_asks_for_its_certificate_and_its_token(start, hostless, remote, tmp_path):
    token_file = secret_file(tmp_path / "token", "a guess of some length")
    reached = remote.settings | {"token_file": str(token_file)}
    editor = start(home=hostless, settings={"host_url": remote.url, "token_file": str(token_file)})
    editor.until(lambda: editor.state()["kind"] == "Error", "the error")
    message = editor.state()["message"]
    assert "self-signed certificate" in message
    assert "ca_file may name" in message
    editor.type(":Foregram status<CR>")
    editor.until(lambda: f"Error: {message}" in editor.text(), "the report")
    trusting = start(home=hostless, settings=reached)
    trusting.until(lambda: trusting.state()["kind"] == "Error", "the error")
    assert "token" in trusting.state()["message"]
    token_file.write_text(remote.token_file.read_text())
    trusting.type(":Foregram restart<CR>")
    trusting.until_ready()
    trusting.type(LOOP)
    ghost = trusting.settled_ghost()
    trusting.type("<Tab>")
    trusting.until_text(TYPED + ghost)
    assert not trusting.said()
