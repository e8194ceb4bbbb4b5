"""The editors on this machine, and what to do next in each."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from os import pathsep
from pathlib import Path
from typing import NamedTuple

PROJECT = "https://github.com/foregram/foregram"
EXTENSION = "foregram.foregram"  # in the Marketplace and in Open VSX
_ELSEWHERE = (  # folders of programs that are often not on the PATH
    *("/snap/bin", "/opt/homebrew/bin", "/usr/local/bin"),
    *("/var/lib/flatpak/exports/bin", "~/.local/share/flatpak/exports/bin"),
    "~/.local/share/JetBrains/Toolbox/scripts",
    "~/Library/Application Support/JetBrains/Toolbox/scripts",
)
_APPS = ("/Applications", "~/Applications")  # on a Mac
_JETBRAINS = (
    *("CLion", "DataGrip", "GoLand", "PhpStorm", "PyCharm"),
    *("Rider", "RubyMine", "RustRover", "WebStorm"),
)
_LEAST_NEOVIM = (0, 11)
_SLOW_S = 5.0  # for a program that only prints its version


class Editor(NamedTuple):
    """An editor: how to find it, and how to set it up."""

    name: str
    programs: tuple[str, ...]
    apps: tuple[str, ...]  # patterns of names on a Mac
    step: str  # a command, or the page with what belongs into its settings

    @property
    def program(self) -> str | None:
        """The path of its program, if there is one here."""
        usual = pathsep.join(str(Path(one).expanduser()) for one in _ELSEWHERE)
        found = (shutil.which(one) or shutil.which(one, path=usual) for one in self.programs)
        return next(filter(None, found), None)

    @property
    def is_here(self) -> bool:
        """Whether it is installed."""
        folders = (Path(one).expanduser() for one in _APPS)
        patterns = [f"{name}.app" for name in self.apps]
        apps = (app for folder in folders for one in patterns for app in folder.glob(one))
        return bool(self.program or next(apps, None))


def _page(name: str) -> str:
    return f"{PROJECT}/blob/HEAD/editor_plugins/{name}"


def _client(name: str, programs: tuple[str, ...], apps: tuple[str, ...], heading: str) -> Editor:
    return Editor(name, programs, apps, _page(f"other_clients.md#{heading}"))


def _like_vscode(name: str, program: str, *others: str, app: str = "") -> Editor:
    step = f"{program} --install-extension {EXTENSION}"
    return Editor(name, (program, *others), (app or name,), step)


EDITORS = (
    _like_vscode("VS Code", "code", "com.visualstudio.code", app="Visual Studio Code"),
    _like_vscode("VSCodium", "codium", "com.vscodium.codium"),
    _like_vscode("Cursor", "cursor"),
    _like_vscode("code-server", "code-server"),
    Editor("Neovim", ("nvim", "io.neovim.nvim"), (), _page("neovim/README.md#start")),
    _client("Emacs", ("emacs",), ("Emacs",), "emacs-with-lsp-mode"),
    _client("Helix", ("hx", "helix"), (), "helix"),
    _client(
        "JetBrains",
        ("idea", "intellij-idea-community", "pycharm-community", *map(str.lower, _JETBRAINS)),
        ("IntelliJ IDEA*", *(f"{one}*" for one in _JETBRAINS)),
        "jetbrains-with-lsp4ij",
    ),
    _client("Sublime Text", ("subl",), ("Sublime Text",), "sublime-text-with-lsp"),
    _client("Kate", ("kate", "org.kde.kate"), ("kate",), "kate"),
    _client("Zed", ("zed", "zeditor", "dev.zed.Zed"), ("Zed",), "zed"),
)


def next_steps() -> Iterator[str]:
    """Yield a line for each editor here: what to do next in it."""
    here = [one for one in EDITORS if one.is_here]
    if not here:
        yield f"No editor was found here. foregram works in these: {_page('other_clients.md')}\n"
        return
    yield "Next, in your editor:\n"
    for editor in here:
        yield f"  {editor.name:<13} {_age(editor) or editor.step}\n"


def _age(editor: Editor) -> str:
    """Say that a Neovim is too old; empty if it is not, or is no Neovim."""
    if editor.name != "Neovim" or editor.program is None:
        return ""
    asked = (editor.program, "--version")
    try:
        told = subprocess.run(asked, capture_output=True, timeout=_SLOW_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.match(rb"NVIM v(\d+)\.(\d+)", told)
    version = tuple(map(int, found.groups())) if found else _LEAST_NEOVIM
    if version >= _LEAST_NEOVIM:
        return ""
    this, least = (".".join(map(str, one)) for one in (version, _LEAST_NEOVIM))
    return f"{this} is too old: foregram needs {least} or newer"
