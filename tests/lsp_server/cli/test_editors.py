"""The editors on this machine, and the next step in each."""

import json
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lsp_server.cli import editors
from lsp_server.cli.editors import EDITORS, EXTENSION, PROJECT, next_steps
from tests.support.markdown_page import MarkdownPage

ROOT = Path(__file__).parents[3]
PAGES = [one for one in EDITORS if one.step.startswith(PROJECT)]


@pytest.fixture
def bin_folder(tmp_path, monkeypatch):
    """The only folder in which programs are looked for."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(editors, "_ELSEWHERE", ())
    monkeypatch.setattr(editors, "_APPS", ())
    return tmp_path


def program(folder, name, says=""):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o700)


def test_each_editor_that_is_here_gets_its_next_step_on_one_line(bin_folder):
    program(bin_folder, "codium")
    program(bin_folder, "hx")
    head, *steps = next_steps()
    assert head == "Next, in your editor:\n"
    assert [line.split(maxsplit=1) for line in steps] == [
        ["VSCodium", f"codium --install-extension {EXTENSION}\n"],
        ["Helix", f"{PROJECT}/blob/HEAD/editor_plugins/other_clients.md#helix\n"],
    ]


def test_programs_off_the_path_and_apps_of_a_mac_are_found(bin_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(editors, "_ELSEWHERE", ("~/exports",))
    monkeypatch.setattr(editors, "_APPS", ("~/Applications",))
    program(tmp_path / "exports", "dev.zed.Zed")
    (tmp_path / "Applications/PyCharm CE.app").mkdir(parents=True)
    assert [line.split()[0] for line in list(next_steps())[1:]] == ["JetBrains", "Zed"]


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("v0.10.4", "0.10 is too old: foregram needs 0.11 or newer"),
        ("v0.11.0", PROJECT),
        ("v1.0.0", PROJECT),
    ],
)
def test_a_neovim_that_is_too_old_is_told(bin_folder, version, told):
    program(bin_folder, "nvim", f"NVIM {version}-dev")
    [_, line] = next_steps()
    assert line.split(maxsplit=1)[1].startswith(told)


def test_a_neovim_that_does_not_start_gets_its_next_step(bin_folder):
    path = bin_folder / "nvim"
    path.write_text("#!/nowhere\n")
    path.chmod(0o700)
    [_, line] = next_steps()
    assert PROJECT in line


def test_without_an_editor_the_page_of_all_is_named(bin_folder):
    [line] = next_steps()
    assert line.endswith("/editor_plugins/other_clients.md\n")


@pytest.mark.parametrize("editor", PAGES, ids=lambda editor: editor.name)
def test_the_page_of_an_editor_has_the_section_that_is_named(editor):
    address = urlsplit(editor.step)
    page = ROOT / address.path.removeprefix(f"{urlsplit(PROJECT).path}/blob/HEAD/")
    assert address.fragment in MarkdownPage(page).anchors


def test_the_address_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Homepage"] == PROJECT


def test_the_extension_is_ours():
    package = json.loads((ROOT / "editor_plugins/vscode/package.json").read_text())
    assert f"{package['publisher']}.{package['name']}" == EXTENSION
