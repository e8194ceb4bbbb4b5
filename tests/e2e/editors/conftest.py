"""Real editors share one home, one warm host and one VS Code per process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.support.editor_home import COMMAND, own_home, ready_host
from tests.support.neovim import Neovim, neovim
from tests.support.scripted_server import ScriptedServer
from tests.support.served_host import RemoteHost, remote_host
from tests.support.vscode import Workbench, chromium, foregram_extension, workbench
from tests.support.vscode_server import CodeServer, code_server


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that drive an editor; those with a ready host need the model."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            # The first start on a machine converts the model.
            item.add_marker(pytest.mark.editors)
            item.add_marker(pytest.mark.timeout(400))
            if "environ" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.model)


@pytest.fixture(scope="session")
def environ(cache_folder: Path) -> Iterator[dict[str, str]]:
    """The environment for editors: nothing of the user's own, and a ready host."""
    with own_home(cache_folder) as ours, ready_host(ours):
        yield ours


@pytest.fixture
def shop(environ: dict[str, str]) -> Path:
    """A project's folder below a short one, which holds sockets."""
    home = Path(mkdtemp(dir=environ["HOME"]))
    (home / "shop/.git").mkdir(parents=True)
    return home / "shop"


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
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def server(environ: dict[str, str]) -> Iterator[CodeServer]:
    """A VS Code with our extension alone."""
    with code_server(environ, foregram_extension()) as started:
        yield started


@pytest.fixture(scope="module")
def code(browser: Browser, server: CodeServer) -> Iterator[Workbench]:
    """Windows with our server, without the state of other files' windows."""
    settings = {"foregram.server.command": [str(COMMAND)]}
    with workbench(browser, server, settings) as opened:
        yield opened


@pytest.fixture
def script(tmp_path: Path) -> ScriptedServer:
    """A server with scripted answers."""
    folder = tmp_path / "server"
    folder.mkdir()
    return ScriptedServer(folder)


@pytest.fixture
def hostless() -> Iterator[dict[str, str]]:
    """An environment without a host and without a model."""
    with own_home() as environ:
        yield environ


@pytest.fixture
def start_neovim(
    request: pytest.FixtureRequest, hostless: dict[str, str], tmp_path: Path
) -> Iterator[Callable[..., Neovim]]:
    """Starts Neovim on files with options of the plugin; the parameter is a version and `ghost_text`.

    Neovim ends before the home without a host does, which waits for its servers.
    """
    version, ghost_text = getattr(request, "param", ("0.12", "auto"))
    given = {"cmd": [str(COMMAND), "lsp"], "ghost_text": ghost_text}
    with ExitStack() as stack:

        def start(
            environ: dict[str, str], *files: Path, before: str = "", **options: Any
        ) -> Neovim:
            folder = tmp_path / f"xdg-{files[0].stem if files else ''}"
            return stack.enter_context(
                neovim(version, environ, folder, *files, options=given | options, before=before)
            )

        yield start


@pytest.fixture
def scripted_neovim(
    hostless: dict[str, str],
    start_neovim: Callable[..., Neovim],
    script: ScriptedServer,
    tmp_path: Path,
) -> Callable[..., Neovim]:
    """Starts Neovim on a file, with a scripted server that behaves as the keywords say."""

    def start(
        text: str = "total = 1\n", *, before: str = "", options: Any = None, **how: Any
    ) -> Neovim:
        file = tmp_path / "a.py"
        file.write_text(text)
        script.behaves(**how)
        own = {"cmd": [*script.command, "lsp"]} | (options or {})
        return start_neovim(hostless, file, before=before, **own)

    return start
