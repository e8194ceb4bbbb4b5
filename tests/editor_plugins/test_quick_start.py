"""The quick start names the lines and the keys that the plugins have."""

import json
import re
from pathlib import Path

from lsp_server.cli.editors import EXTENSION

PLUGINS = Path(__file__).parents[2] / "editor_plugins"
ROW = r"^\| [^|]* \| (?:`(.*?)`|\*.*?\*) \| `(.*?)` \|$"
PAGE = (PLUGINS / "quick_start.md").read_text()
LINES = dict(re.findall(r"^\| ([^|]*) \| (?:start )?`([^`]*)` \|$", PAGE, re.M))
KEYS = re.findall(ROW, PAGE, re.M)
OF_NEOVIM = (PLUGINS / "neovim/README.md").read_text()


def test_each_line_that_installs_a_plugin_is_that_of_its_own_page():
    [extension] = [line for editor, line in LINES.items() if "VS Code" in editor]
    assert extension == f"code --install-extension {EXTENSION}"
    of_neovim = [line for editor, line in LINES.items() if "Neovim" in editor]
    assert of_neovim
    assert [line for line in of_neovim if f"`{line}`" not in OF_NEOVIM] == []


def test_each_key_of_vs_code_is_bound_by_the_extension():
    manifest = json.loads((PLUGINS / "vscode/package.json").read_text())
    bound = {one["key"] for one in manifest["contributes"]["keybindings"]}
    assert {key.lower() for key, _ in KEYS if key} <= bound


def test_on_a_mac_vs_code_has_cmd_in_place_of_ctrl():
    manifest = json.loads((PLUGINS / "vscode/package.json").read_text())
    keys = [one for one in manifest["contributes"]["keybindings"] if "ctrl" in one["key"]]
    assert keys
    assert [one["key"].replace("ctrl", "cmd") for one in keys] == [one["mac"] for one in keys]


def test_each_key_of_neovim_is_a_default_of_the_plugin():
    defaults = re.findall(r'^    \w+ = "(.*)",$', OF_NEOVIM, re.M)
    assert KEYS
    assert {key.replace("\\", "\\\\") for _, key in KEYS} <= set(defaults)
