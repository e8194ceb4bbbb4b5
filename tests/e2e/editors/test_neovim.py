"""The plugin in real Neovim, with the real server and the offline model."""

import os
import signal
import time
from contextlib import ExitStack

import pytest

from tests.support.completion_hosts import host_status
from tests.support.editor_home import COMMAND
from tests.support.neovim import LIMIT_S, Neovim, neovim, setup_table
from tests.support.neovim_watch import watch, watched
from tests.support.polling import until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.model,
    pytest.mark.editors,
    pytest.mark.timeout(400),  # the first start on a machine converts the model
]

SOURCE = '''"""A shop's inventory."""


def total_price(items):
    """The price of all items."""
    total = 0
    for item in items:
        total += item.price * item.count
    return total


def total_weight(items):
    """The weight of all items."""
    total = 0
'''
LOOP = "Gofor item in it"  # begins a loop below the last line, whose completion has several lines
NEW = "Go<C-u><CR><CR>def "  # a function of which the model knows nothing: candidates differ
TYPED = SOURCE + "    for item in it"
KEY_S = 0.08  # from one key of a person to the next
REST_S = 1.0  # long enough for whatever the server has to say


@pytest.fixture(params=[("0.11", "auto"), ("0.12", "auto"), ("0.12", "own")], ids="-".join)
def start(request, environ, tmp_path):
    """Starts Neovim on a file of the shop, in one version, with one way to draw."""
    version, ghost_text = request.param
    with ExitStack() as stack:

        def started(before="", source=SOURCE, name="shop.py", folder="", **options) -> Neovim:
            file = tmp_path / folder / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(source)
            given = {"cmd": [str(COMMAND), "lsp"], "ghost_text": ghost_text} | options
            xdg = tmp_path / folder / "xdg"
            editor = stack.enter_context(
                neovim(version, environ, xdg, file, setup=setup_table(given), before=before)
            )
            editor.until_ready()
            return editor

        yield started


def status(environ):
    """What the host says of itself; on a busy machine it may take its time."""
    return until(lambda: host_status(environ), "the host's status", limit_s=LIMIT_S)


def record_messages(editor):
    """Keep what the plugin tells the server."""
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


def test_tab_accepts_what_is_shown_as_one_undo_step_and_the_file_is_saved(start, tmp_path):
    editor = start()
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
    until(lambda: (tmp_path / "shop.py").read_text() != SOURCE, "the saved file")
    assert (tmp_path / "shop.py").read_text() == TYPED + ghost + "\n"


def test_the_ghost_text_stays_while_one_types_along(start):
    editor = start()
    editor.type(LOOP)
    ghost = editor.settled_ghost()
    line = ghost.split("\n")[0]
    assert len(line) >= 3
    watch(editor, TYPED + ghost)
    began = time.monotonic()
    # A rest within and one at the end: Neovim 0.12 asks, and is answered, when one rests alone.
    for part in (line[:2], line[2:-1]):
        for key in part:
            editor.type(key)
            time.sleep(KEY_S)
        time.sleep(REST_S)
    seen, took_s = watched(editor), time.monotonic() - began
    assert (seen.gaps, seen.others) == ([], [])
    assert seen.num_answers >= 2
    assert seen.num_looks > 20 * took_s, "a look in 50 ms, of one in 20 ms without other work"
    assert editor.view() == (TYPED + line[:-1], ghost[len(line) - 1 :])


def test_ghost_text_that_no_longer_fits_is_gone_at_once(start):
    editor = start()
    editor.type(LOOP)
    assert not editor.settled_ghost().startswith("Z")
    editor.type("Z")
    editor.until(lambda: editor.text() == TYPED + "Z", "the key")
    view = editor.view()
    assert not view.ghost or view.before == TYPED + "Z"
    assert not view.ghost.startswith("ems")


def test_tab_right_after_a_key_leaves_no_strays(start):
    editor = start()
    editor.type(LOOP)
    ghost = editor.settled_ghost()
    editor.type(ghost[:2] + "<Tab>")
    editor.until_text(TYPED + ghost)


def test_a_word_and_a_line_are_accepted_and_the_rest_stays(start):
    editor = start()
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
    """How much of the ghost text is accepted; an item that came since begins with what was left."""
    left_before = len(params["item"]["insertText"])
    return len(ghost) - left_before + params["acceptedLength"]


def test_another_candidate_and_the_first_again(start):
    editor = start()
    editor.type(NEW)
    first = editor.settled_ghost()
    editor.type("<M-]>")
    editor.until(lambda: editor.ghost() not in ("", first) or editor.said(), "another candidate")
    other = editor.ghost()
    assert other != first, editor.story()
    editor.type("<M-[>")
    editor.until(lambda: editor.ghost() == first, "the first candidate")
    editor.type("<M-]><Tab>")
    editor.until_text(SOURCE + "\n\ndef " + other)


def test_dismissed_ghost_text_stays_away_until_the_next_key(start):
    editor = start()
    editor.type(LOOP)
    ghost = editor.settled_ghost()
    editor.type("<C-]>")
    editor.until_no_ghost()
    assert editor.text() == TYPED
    editor.type(ghost[0])
    assert editor.until_ghost() == ghost[1:]


def test_completions_can_be_asked_for(start):
    editor = start()
    editor.type(LOOP)
    editor.settled_ghost()
    editor.type("<C-]>")
    editor.until_no_ghost()
    editor.type("<M-\\>")
    editor.until_ghost()


def test_a_language_is_switched_off_and_on(start):
    editor = start()
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


def test_a_host_that_was_killed_comes_back(start, environ):
    editor = start()  # wants a host after the last one was started: it waits for no second try
    former = status(environ)["pid"]
    os.kill(former, signal.SIGKILL)
    editor.type(LOOP)
    editor.until_ghost()
    assert status(environ)["pid"] != former
    assert not editor.said()


def test_ten_windows_share_one_host(environ, tmp_path):
    with ExitStack() as stack:
        setup = setup_table({"cmd": [str(COMMAND), "lsp"]})
        editors = []
        for number in range(10):
            file = tmp_path / f"shop{number}.py"
            file.write_text(SOURCE)
            one = neovim("0.11", environ, tmp_path / f"xdg{number}", file, setup=setup)
            editors.append(stack.enter_context(one))
        for editor in editors:
            editor.until_ready()
        former = status(environ)["pid"]
        for editor in editors:
            editor.type(LOOP)
        assert all(editor.until_ghost(200) for editor in editors)
        host = status(environ)
        assert host["numClients"] >= len(editors), host
        assert host["pid"] == former
