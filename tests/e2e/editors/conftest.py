"""What the tests of real editors share: one home, one warm host and one VS Code per process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.completion_hosts import RemoteHost, remote_host
from tests.support.editor_home import COMMAND, own_home, ready_host
from tests.support.scripted_server import ScriptedServer
from tests.support.vscode import Workbench, chromium, foregram_extension, workbench
from tests.support.vscode_server import CodeServer, code_server


@pytest.fixture(scope="session")
def environ(cache_folder: Path) -> Iterator[dict[str, str]]:
    """The environment for editors: nothing of the user's own, and a ready host."""
    with own_home(cache_folder) as ours, ready_host(ours):
        yield ours


@pytest.fixture(scope="session")
def remote(tmp_path_factory: pytest.TempPathFactory, cache_folder: Path) -> Iterator[RemoteHost]:
    """A second host, behind TLS with a self-signed certificate and a token."""
    with (
        own_home(cache_folder) as elsewhere,
        remote_host(tmp_path_factory.mktemp("remote"), elsewhere) as started,
    ):
        yield started


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser of all windows of VS Code."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def server(environ: dict[str, str]) -> Iterator[CodeServer]:
    """A VS Code with our extension alone."""
    with code_server(environ, foregram_extension()) as started:
        yield started


@pytest.fixture(scope="module")
def code(browser: Browser, server: CodeServer) -> Iterator[Workbench]:
    """Windows with our server, which know nothing of those of other files."""
    settings = {"foregram.server.command": [str(COMMAND)]}
    with workbench(browser, server, settings) as opened:
        yield opened


@pytest.fixture
def script(tmp_path: Path) -> ScriptedServer:
    """A server that says what the test has it say."""
    folder = tmp_path / "server"
    folder.mkdir()
    return ScriptedServer(folder)
