"""code-server, the real VS Code workbench behind a web server, with nothing of the user's own."""

import json
import os
import signal
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.editor_home import COMMAND
from tests.support.editor_parts import part
from tests.support.polling import until
from tests.support.ports import free_port

_START_S = 60.0
_END_S = 15.0
_QUIET_SETTINGS: dict[str, Any] = {
    "editor.inlineSuggest.enabled": True,
    # The menu of words would cover the ghost text; tests about it switch it on.
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "editor.suggestOnTriggerCharacters": False,
    "editor.scrollBeyondLastLine": False,  # keeps a short file on the screen as a whole
    "editor.renderWhitespace": "none",
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "security.workspace.trust.enabled": False,
    "extensions.autoUpdate": "off",  # `false` is rewritten at the start, in a tab of its own
    "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True,
    "update.mode": "none",
    "telemetry.telemetryLevel": "off",
    "files.autoSave": "off",
    "workbench.editorLargeFileConfirmation": 100,  # in MB; a test opens a file of 20
    "files.restoreUndoStack": False,  # the next test may write a file of the same name
    "chat.disableAIFeatures": True,
    "git.enabled": False,
}
TIDY_KEY = "F9"
_TIDY = ("notifications.clearAll", "workbench.action.revertAndCloseActiveEditor")
_KEYS = [{"key": "f9", "command": "runCommands", "args": {"commands": _TIDY}}]


@dataclass
class CodeServer:
    """A running code-server; all its files lie below `folder`."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    environ: Mapping[str, str]
    extensions: tuple[Path, ...]

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Write the settings; open windows read them at once."""
        _write_settings(self.folder, settings, self.extensions)

    def settings(self) -> dict[str, Any]:
        """The settings in the files, whoever wrote them."""
        files = [self.folder / f"user/{name}/settings.json" for name in ("User", "Machine")]
        texts = [one.read_text() or "{}" for one in files]  # empty while VS Code writes it
        return {key: value for text in texts for key, value in json.loads(text).items()}

    def address(self, place: Path) -> str:
        kind = "folder" if place.is_dir() else "workspace"
        return f"http://127.0.0.1:{self.port}/?{kind}={place}"

    def foregram(self, *words: str) -> str:
        """Return the output of one of foregram's own commands in the server's environment."""
        done = subprocess.run(
            [COMMAND, *words], env=self.environ, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr


@contextmanager
def code_server(environ: Mapping[str, str], *extensions: Path) -> Iterator[CodeServer]:
    """Run a code-server with these extensions. Skips the test if a part is missing."""
    program, node = part("code-server"), part("node")
    ours = {
        **environ,
        "PATH": f"{node.parent}:{environ['PATH']}",
        "EXTENSIONS_GALLERY": '{"serviceUrl":""}',  # calls to the gallery end here
    }
    with tempfile.TemporaryDirectory(prefix="fg-vscode-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), free_port()
        # code-server would write a missing one with a password, below the home folder.
        config = folder / "config.yaml"
        config.write_text(f"bind-addr: 127.0.0.1:{port}\nauth: none\ncert: false\n")
        _write_settings(folder, {}, extensions)
        _write(folder / "user/User/keybindings.json", _KEYS)
        base = [
            *(program, "--config", config, "--user-data-dir", folder / "user"),
            *("--extensions-dir", folder / "extensions"),
        ]
        if extensions:
            _install(base, extensions, ours)
        with _running(base, ours, folder) as process:
            yield CodeServer(folder, port, process, environ, extensions)


def _install(base: list[Any], extensions: tuple[Path, ...], environ: Mapping[str, str]) -> None:
    wanted = [word for path in extensions for word in ("--install-extension", path)]
    done = subprocess.run(
        [*base, *wanted], env=environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def _running(
    base: list[Any], environ: Mapping[str, str], folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process group that listens; at the end none of its processes is left."""
    quiet = ("--disable-telemetry", "--disable-update-check", "--disable-workspace-trust")
    other = ("--disable-getting-started-override", "--ignore-last-opened")
    port = (folder / "config.yaml").read_text().split("\n", 1)[0].rpartition(":")[2]
    log = folder / "code-server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*base, *quiet, *other],
            env=environ,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        until(
            lambda: _is_healthy(port) or process.poll() is not None,
            "code-server listens",
            limit_s=_START_S,
        )
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        _end(process)
    assert not _group(process.pid), f"code-server left {_group(process.pid)}"


def _is_healthy(port: str) -> bool:
    with suppress(URLError, OSError), urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2):
        return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask the group to end, and kill the rest."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        deadline = time.monotonic() + _END_S
        while time.monotonic() < deadline:
            process.poll()
            if not _group(process.pid):
                process.wait()
                return
            time.sleep(0.05)


def _group(group: int) -> dict[int, str]:
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] != "Z":
                found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
    return found


def _write_settings(
    folder: Path, settings: Mapping[str, Any], extensions: tuple[Path, ...]
) -> None:
    """Write settings; with a remote VS Code, those of the machine have a file of their own."""
    ours = set().union(*map(_machine_keys, extensions))
    machine = {key: value for key, value in settings.items() if key in ours}
    user = {key: value for key, value in settings.items() if key not in ours}
    _write(folder / "user/Machine/settings.json", machine)
    _write(folder / "user/User/settings.json", {**_QUIET_SETTINGS, **user})


def _machine_keys(extension: Path) -> set[str]:
    """Return the settings of an extension that belong to a machine."""
    with zipfile.ZipFile(extension) as packed:
        manifest = json.loads(packed.read("extension/package.json"))
    groups = manifest.get("contributes", {}).get("configuration", [])
    declared = [item for group in groups for item in group["properties"].items()]
    return {key for key, one in declared if one.get("scope") == "machine"}


def _write(path: Path, settings: object) -> None:
    """Write settings if they differ: windows have to process each write."""
    text = json.dumps(settings, indent=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
