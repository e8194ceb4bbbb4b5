"""What plugin managers, nvim-lspconfig and Mason read says what the plugin and the package say."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from engine import VERSION
from tests.support.lua_modules import PLUGIN, load

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HELP = (PLUGIN / "doc/foregram.txt").read_text()
README = (PLUGIN / "README.md").read_text()
LSP = (PLUGIN / "lsp/foregram.lua").read_text()
PACKAGE = PLUGIN / "mason/packages/foregram/package.yaml"
FOR_NEOVIM = ("doc", "lsp", "lua", "plugin")  # what it looks for in a folder of its path


def test_a_clone_of_the_repository_is_a_plugin():
    links = {path.name: path.resolve() for path in ROOT.iterdir() if path.is_symlink()}
    assert links == {name: PLUGIN / name for name in FOR_NEOVIM}
    assert {path.name for path in PLUGIN.iterdir() if path.is_dir()} >= set(FOR_NEOVIM)


@pytest.mark.parametrize("name", ["cmd", "root_markers"])
def test_the_server_alone_starts_as_the_plugin_starts_it(name):
    [default] = [
        option.default for option in load("config").options.values() if option.name == name
    ]
    assert list(load.lua.execute(LSP)[name].values()) == list(default.values())


def test_every_install_line_of_the_readme_stands_in_the_help():
    start = README.partition("## Start")[2].partition("## Options")[0]
    lines = re.findall(r"^\|.*\| `(.*)` \|$", start, re.M)
    lines += re.findall(r"^    (.*)$", start, re.M)
    assert len(lines) == 6
    for block in [*lines, *re.findall(r"```lua\n(.*?)\n```", start, re.S)]:
        assert block.replace("; ", "\n").replace("\n", "\n    ") in HELP, block


@pytest.mark.parametrize("text", [HELP, README, LSP], ids=["help", "README", "lsp"])
def test_the_address_is_the_projects_own(text):
    assert set(re.findall(r"https://github.com/foregram\S*?(?=\W*$|\")", text, re.M)) == {
        PROJECT["urls"]["Homepage"]
    }


def test_masons_package_is_the_one_that_pip_installs():
    package = yaml.safe_load(PACKAGE.read_text())
    assert PACKAGE.read_text().startswith("---\n"), "Mason asks for it"
    assert package["name"] == PACKAGE.parent.name == PROJECT["name"]
    assert package["description"] == PROJECT["description"]
    assert package["homepage"] == PROJECT["urls"]["Homepage"]
    assert package["licenses"] == [PROJECT["license"]]
    assert package["source"] == {"id": f"pkg:pypi/{PROJECT['name']}@{VERSION}"}
    assert package["bin"] == {name: f"pypi:{name}" for name in PROJECT["scripts"]}
    assert package["neovim"] == {"lspconfig": "foregram"}
