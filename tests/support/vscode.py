"""VS Code for tests: the real workbench, as many windows as wanted.

    with workbench(environ, settings, vsix) as code, code.window(folder) as window:
        window.open("shop.py")
        window.type("def total")
        assert window.wait_for_ghost()

What goes wrong inside `code.window` is told with a picture, the page's console and the server's
log.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, sync_playwright
from playwright.sync_api import Error as PageError
from playwright.sync_api import TimeoutError as PageTimeout

from tests.support.editor_parts import part
from tests.support.vscode_screen import prepare
from tests.support.vscode_server import CodeServer, code_server
from tests.support.vscode_window import Window

_START_S = 90.0
_CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # the page reaches nothing else
]


@dataclass
class Workbench:
    """A code-server and a browser: what all windows of a test share."""

    server: CodeServer
    browser: BrowserContext
    settings: Mapping[str, Any]

    @contextmanager
    def window(self, place: Path, settings: Mapping[str, Any] | None = None) -> Iterator[Window]:
        """A window on a folder or a `.code-workspace`, ready for keys.

        These settings hold beside the workbench's.
        """
        self.server.configure({**self.settings, **(settings or {})})
        page = self.browser.new_page()
        window = Window(page, self.server, place if place.is_dir() else place.parent)
        page.on("console", lambda message: window.console.append(message.text))
        page.on("pageerror", lambda error: window.console.append(str(error)))
        try:
            page.goto(self.server.address(place), wait_until="domcontentloaded")
            _wait_for_files(page)
            prepare(page)
            yield window
        except BaseException as error:
            if not getattr(error, "__notes__", None):  # of several windows the innermost tells
                error.add_note(_keep_evidence(window))
            raise
        finally:
            page.close()


@contextmanager
def workbench(
    environ: Mapping[str, str],
    settings: Mapping[str, Any],
    *extensions: Path,
    size: tuple[int, int] = (1200, 760),
) -> Iterator[Workbench]:
    """VS Code with these user settings and extensions."""
    with (
        code_server(environ, settings, *extensions) as server,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=part("chromium"), args=_CHROMIUM) as browser,
        browser.new_context(viewport={"width": size[0], "height": size[1]}) as context,
    ):
        yield Workbench(server, context, settings)


def foregram_extension() -> Path:
    """Our packed extension. Skips the test where it is not built."""
    return part("vsix")


def _wait_for_files(page: Page) -> None:
    """Wait for the file list; a workspace of folders sometimes opens without any of them."""
    files = ".explorer-folders-view .monaco-list"
    try:
        page.wait_for_selector(files, timeout=1000 * _START_S / 2)
    except PageTimeout:
        page.reload(wait_until="domcontentloaded")
        page.wait_for_selector(files, timeout=1000 * _START_S)


def _keep_evidence(window: Window) -> str:
    """Keep what tells why a test failed, and say where."""
    folder = Path(tempfile.mkdtemp(prefix="fg-vscode-failed-"))
    (folder / "console.txt").write_text("\n".join(window.console))
    with suppress(PageError):  # a page that is broken tells less
        window.page.screenshot(path=folder / "screen.png")
    for name in ("why", "logs"):
        (folder / f"{name}.txt").write_text(window.server.foregram(name))
    return f"screen, console, log and reasons: {folder}"
