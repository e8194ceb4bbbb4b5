"""The quick start names the keys that the plugins have."""

import json
import re
from pathlib import Path

PLUGINS = Path(__file__).parents[2] / "editor_plugins"
ROW = r"^\| [^|]* \| (?:`(.*?)`|\*.*?\*) \| `(.*?)` \|$"
KEYS = re.findall(ROW, (PLUGINS / "quick_start.md").read_text(), re.M)


def test_each_key_of_vs_code_is_bound_by_the_extension():
    manifest = json.loads((PLUGINS / "vscode/package.json").read_text())
    bound = {one["key"] for one in manifest["contributes"]["keybindings"]}
    assert {key.lower() for key, _ in KEYS if key} <= bound


def test_each_key_of_neovim_is_a_default_of_the_plugin():
    defaults = re.findall(r'^    \w+ = "(.*)",$', (PLUGINS / "neovim/README.md").read_text(), re.M)
    assert KEYS
    assert {key.replace("\\", "\\\\") for _, key in KEYS} <= set(defaults)
