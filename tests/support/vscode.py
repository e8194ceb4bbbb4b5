"""VS Code for tests: the real workbench, as many windows as wanted.

    with workbench(browser, server, settings) as code, code.window(folder) as window:
        window.open("shop.py")
        window.type("def total")
        assert window.wait_for_ghost()

`code.kept_window()` is the same window for one test after another.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from playwright.sync_api import Error as PageError
from playwright.sync_api import TimeoutError as PageTimeout

from tests.support.editor_parts import part
from tests.support.scripted_server import ScriptedServer
from tests.support.vscode_screen import READER
from tests.support.vscode_server import CodeServer
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
    """The server, pages' storage and settings that a test's windows share."""

    server: CodeServer
    browser: BrowserContext
    settings: Mapping[str, Any]
    kept: Window | None = None

    @contextmanager
    def window(self, place: Path, settings: Mapping[str, Any] | None = None) -> Iterator[Window]:
        """Open a window on a folder or a `.code-workspace`, ready for keys.

        These settings are added to the workbench's.
        """
        if self.kept is not None:  # it would read these settings, and may miss the next ones
            self.kept.page.close()
            self.kept = None
        window = self._opened(place, settings)
        with _told(window):
            yield window
        window.page.close()

    @contextmanager
    def kept_window(self, settings: Mapping[str, Any] | None = None) -> Iterator[Window]:
        """Return the last window with all closed, or a new one if a test failed in it.

        A new one takes longer than most tests. Only settings of the machine may differ from the
        last ones: they arrive a while later, and a user's do not always.
        """
        window, self.kept = self.kept, None
        if window is None:
            folder = self.server.folder / "kept"
            folder.mkdir(exist_ok=True)
            window = self._opened(folder, settings)
        with _told(window):
            window.tidy()
            self._configure(settings)
            yield window
        self.kept = window

    def _opened(self, place: Path, settings: Mapping[str, Any] | None) -> Window:
        self._configure(settings)
        folder = place if place.is_dir() else place.parent
        window = Window(self.browser.new_page(), self.server, folder)
        window.page.on("console", lambda message: window.console.append(message.text))
        window.page.on("pageerror", lambda error: window.console.append(str(error)))
        with _told(window):
            window.page.add_init_script(READER)
            window.page.goto(self.server.address(place), wait_until="domcontentloaded")
            _wait_for_files(window.page)
        return window

    def _configure(self, settings: Mapping[str, Any] | None) -> None:
        self.server.configure({**self.settings, **(settings or {})})


@contextmanager
def _told(window: Window) -> Iterator[None]:
    """Add a picture, the page's console and the server's log to a failure."""
    try:
        yield
    except BaseException as error:
        if not getattr(error, "__notes__", None):  # only the innermost of several windows adds them
            error.add_note(_keep_evidence(window))
        window.page.close()
        raise


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run the browser of all windows. Skips the test if it is missing."""
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=part("chromium"), args=_CHROMIUM) as browser,
    ):
        yield browser


@contextmanager
def workbench(
    browser: Browser,
    server: CodeServer,
    settings: Mapping[str, Any],
    *,
    size: tuple[int, int] = (1200, 760),
) -> Iterator[Workbench]:
    """Run a workbench with these user settings and no state of former windows."""
    with browser.new_context(viewport={"width": size[0], "height": size[1]}) as context:
        yield Workbench(server, context, settings)


@contextmanager
def scripted_window(
    code: Workbench, script: ScriptedServer, settings: Mapping[str, Any] | None = None
) -> Iterator[Window]:
    """Open a window with the script's server instead of ours; a new one if it has settings."""
    ours = {"foregram.server.command": script.command, **(settings or {})}
    with code.window(script.folder, ours) if settings else code.kept_window(ours) as window:
        window.until(lambda: script.heard("initialize"), "the server")
        yield window


def foregram_extension() -> Path:
    """Return our packed extension. Skips the test if it is not built."""
    return part("vsix")


def _wait_for_files(page: Page) -> None:
    """Wait for the file list; a workspace of folders sometimes opens without one."""
    files = ".explorer-folders-view .monaco-list"
    try:
        page.wait_for_selector(files, timeout=1000 * _START_S / 2)
    except PageTimeout:
        page.reload(wait_until="domcontentloaded")
        page.wait_for_selector(files, timeout=1000 * _START_S)


def _keep_evidence(window: Window) -> str:
    """Keep evidence of a test's failure; return where it is."""
    folder = Path(tempfile.mkdtemp(prefix="fg-vscode-failed-"))
    (folder / "console.txt").write_text("\n".join(window.console))
    with suppress(PageError):  # a broken page gives less evidence
        window.page.screenshot(path=folder / "screen.png")
    for name in ("why", "logs"):
        (folder / f"{name}.txt").write_text(window.server.foregram(name))
    return f"screen, console, log and reasons: {folder}"
