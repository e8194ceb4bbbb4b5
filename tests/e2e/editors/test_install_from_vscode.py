"""VS Code without foregram: it offers to install it, shows the commands, and then completes.

The real virtual environment, pip and server; what the server depends on comes from this test's own
environment, since a download of torch proves nothing of ours. So the requirements that the extension
brings along are emptied.
"""

import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.support.vscode import foregram_extension, workbench
from tests.support.vscode_server import code_server

SOURCE = "def total(items):\n    result = 0\n    for item in items:\n        result += \n"


@pytest.fixture(scope="module")
def bare_server(environ, tmp_path_factory):
    """VS Code on a machine with Python and pip, and without foregram."""
    tools = tmp_path_factory.mktemp("tools")
    (tools / "python3.13").symlink_to(Path(sys.base_prefix, "bin", "python3"))
    folders = environ["PATH"].split(":")
    folders = [folder for folder in folders if not Path(folder, "foregram").exists()]
    bare = environ | {
        "PATH": ":".join([str(tools), *folders]),
        "PIP_NO_INDEX": "1",
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    extension = without_requirements(foregram_extension(), tools / "foregram.vsix")
    with code_server(bare, extension) as started:
        yield started


def without_requirements(extension, target):
    with zipfile.ZipFile(extension) as packed, zipfile.ZipFile(target, "w") as emptied:
        for name in packed.namelist():
            is_locked = name.startswith("extension/requirements/")
            emptied.writestr(name, b"# nothing\n" if is_locked else packed.read(name))
    return target


def storage(server):
    return server.folder / "user/User/globalStorage/foregram.foregram"


@pytest.fixture
def code(browser, bare_server):
    """Windows without former state, where nothing is installed yet."""
    shutil.rmtree(storage(bare_server), ignore_errors=True)
    with workbench(browser, bare_server, {}) as opened:
        yield opened


@pytest.fixture
def shop(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "total.py").write_text(SOURCE)
    return folder


def first_steps(window):
    """The walkthrough, once its first step has taken the focus from what was open."""
    shown = window.page.locator(".gettingStartedContainer")
    shown.locator("[data-step-id]:focus").wait_for()
    return shown


def test_foregram_is_installed_with_consent_into_a_folder_of_the_extensions_own(code, shop):
    with code.window(shop) as window:
        first_steps(window).get_by_role("button", name="Install…").click()
        dialog = window.dialog()
        shown = dialog.text_content() or ""
        assert "-m venv --clear " in shown
        assert "--require-hashes --only-binary :all: -r " in shown
        assert "foregram-0.1.0-py3-none-any.whl" in shown
        dialog.locator(".monaco-button:has-text('Install')").click()
        window.wait_for_status("loading", saying="Installing: Step 1 of 3")
        window.command("foregram: Install or Update the Server…")  # shows how far it is
        assert not dialog.count()
        window.wait_until_ready()
        window.open("total.py")
        window.go_to(4, 19)
        window.type("i")
        assert window.wait_for_ghost().ghost.startswith("tem")
        (command,) = code.server.folder.rglob("server/bin/foregram")
        assert "globalStorage/foregram.foregram" in str(command)


def test_what_was_installed_can_be_removed_once_it_was_listed(code, shop, tmp_path):
    cache = tmp_path / "cache"
    settings = {"foregram.enable": False, "foregram.cacheFolder": str(cache)}
    with code.window(shop, settings | {"foregram.runtimeFolder": str(tmp_path / "run")}) as window:
        first_steps(window)
        window.command("foregram: Install or Update the Server…")
        window.dialog().locator(".monaco-button:has-text('Install')").click()
        window.wait_for_status("circle-slash", saying="Suggestions are off", limit_s=120)
        window.command("foregram: Remove the Server…")
        assert "the environment: " in (window.dialog().text_content() or "")
        window.dialog().locator(".monaco-button:has-text('Remove')").click()
        window.wait_for_status("warning", saying="not installed", limit_s=60)
        assert not (storage(code.server) / "server").exists()


def test_nothing_is_installed_without_consent_and_a_failure_says_why_and_leaves_nothing(code, shop):
    settings = {"foregram.server.package": "foregram-of-nobody"}
    with code.window(shop, settings) as window:
        first_steps(window)
        window.command("foregram: Install or Update the Server…")
        window.dialog().locator(".monaco-button:has-text('Cancel')").click()
        window.wait_for_status("warning", saying="not installed")
        assert not list(code.server.folder.rglob("server/bin/foregram"))
        window.command("foregram: Install or Update the Server…")
        window.dialog().locator(".monaco-button:has-text('Install')").click()
        told = window.wait_for_message("could not be installed")
        assert "No matching distribution found for foregram-of-nobody" in told
        window.wait_for_status("warning", saying="not installed")
        assert not (storage(code.server) / "server").exists()


def test_in_a_browser_without_a_machine_it_says_that_it_cannot_start_a_process(code, shop):
    settings = {"remote.extensionKind": {"foregram.foregram": ["ui"]}}
    with code.window(shop, settings) as window:
        window.wait_for_status("circle-slash", saying="here is no machine to start it on")
        window.command("foregram: Suggest Now")
        window.wait_for_message("Remote-SSH")


def test_the_first_steps_open_once_and_whenever_the_status_item_is_clicked(code, shop, tmp_path):
    with code.window(shop) as window:
        assert "Install the server" in first_steps(window).text_content()
    other = tmp_path / "other"
    other.mkdir()
    with code.window(other) as window:
        window.wait_for_status("warning", saying="not installed")
        window.command("foregram: Menu")
        window.pick("Use an Existing Installation…")
        window.wait_for_settings("foregram.server.command")
        window.press("Escape")
        assert not window.page.locator(".gettingStartedContainer").count()
        window.click_status()
        first_steps(window)
