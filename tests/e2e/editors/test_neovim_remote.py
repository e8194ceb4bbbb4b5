"""Real Neovim and a host elsewhere: over TLS, with a token, and what is said where one is wrong."""

import pytest

from tests.support.completion_hosts import secret_file
from tests.support.editor_home import COMMAND, own_home
from tests.support.neovim import neovim, setup_table

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.model,
    pytest.mark.editors,
    pytest.mark.timeout(400),  # the first start on a machine converts the model
]

SOURCE = "def total_price(items):\n    total = 0\n"


@pytest.fixture(params=["0.11", "0.12"])
def start(request, tmp_path):
    """Starts Neovim with settings, in one version."""
    file = tmp_path / "shop.py"
    file.write_text(SOURCE)

    def started(environ, settings):
        options = {"cmd": [str(COMMAND), "lsp"], "settings": settings}
        setup = setup_table(options)
        return neovim(request.param, environ, tmp_path / "xdg", file, setup=setup)

    with own_home() as environ:
        yield lambda settings: started(environ, settings)


def test_a_host_by_url_and_token_with_a_certificate_of_its_own(start, remote):
    with start(remote.settings) as editor:
        editor.until_ready()
        editor.type("Gofor item in it")
        ghost = editor.settled_ghost()
        editor.type("<Tab>")
        editor.until_text(SOURCE + "    for item in it" + ghost)
        assert not editor.said()


def test_a_certificate_that_nobody_trusts_is_told(start, remote):
    settings = {**remote.settings}
    del settings["ca_file"]
    with start(settings) as editor:
        editor.until(lambda: editor.state()["kind"] == "Error", "the error")
        message = editor.state()["message"]
        assert "self-signed certificate" in message
        assert "ca_file may name" in message
        editor.type(":Foregram status<CR>")
        editor.until(lambda: f"Error: {message}" in editor.text(), "the report")


def test_a_wrong_token_is_told(start, remote, tmp_path):
    wrong = secret_file(tmp_path / "wrong", "a guess of some length")
    with start({**remote.settings, "token_file": str(wrong)}) as editor:
        editor.until(lambda: editor.state()["kind"] == "Error", "the error")
        assert "token" in editor.state()["message"]
        editor.type("ototal")
        editor.until(lambda: editor.text().count("total") > 2, "the keys")


def test_the_right_token_in_the_token_file_holds_after_a_restart(start, remote, tmp_path):
    token_file = secret_file(tmp_path / "token", "a guess of some length")
    with start({**remote.settings, "token_file": str(token_file)}) as editor:
        editor.until(lambda: editor.state()["kind"] == "Error", "the error")
        token_file.write_text(remote.token_file.read_text())
        editor.type(":Foregram restart<CR>")
        editor.until_ready()
        editor.type("Gofor item in it")
        editor.until_ghost()
        assert not editor.said()
