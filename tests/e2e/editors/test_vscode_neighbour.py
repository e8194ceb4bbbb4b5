"""VS Code with a second extension that offers ghost text of its own."""

import json
import zipfile

from tests.support.editor_home import COMMAND
from tests.support.sources import BODY
from tests.support.vscode import foregram_extension, workbench
from tests.support.vscode_server import code_server

TEXT = "pass  # says the neighbour"
_MANIFEST = {
    "name": "neighbour",
    "publisher": "foregram-tests",
    "version": "0.0.1",
    "engines": {"vscode": "^1.91.0"},
    "main": "./extension.js",
    "activationEvents": ["onStartupFinished"],
}
_CODE = f"""
const vscode = require("vscode");
const items = (document, position) => ({{
  items: [new vscode.InlineCompletionItem({TEXT!r}, new vscode.Range(position, position))],
}});
exports.activate = () => vscode.languages.registerInlineCompletionItemProvider(
  {{ language: "python" }}, {{ provideInlineCompletionItems: items }});
"""
_VSIX = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="neighbour" Version="0.0.1" Publisher="foregram-tests"/>
    <DisplayName>neighbour</DisplayName>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json"/>
  </Assets>
</PackageManifest>
"""


def neighbour_extension(folder):
    path = folder / "neighbour.vsix"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("extension.vsixmanifest", _VSIX)
        packed.writestr("extension/package.json", json.dumps(_MANIFEST))
        packed.writestr("extension/extension.js", _CODE)
    return path


def test_with_a_second_provider_both_are_offered_and_tab_takes_the_one_that_is_shown(
    environ, browser, tmp_path
):
    neighbour = neighbour_extension(tmp_path)
    folder = tmp_path / "shop"
    folder.mkdir()
    settings = {"foregram.server.command": [str(COMMAND)]}
    with (
        code_server(environ, foregram_extension(), neighbour) as server,
        workbench(browser, server, settings) as both,
        both.window(folder) as window,
    ):
        window.wait_until_ready()
        window.open_at(BODY)
        window.press("Enter")
        first = window.wait_for_ghost()
        window.press("Alt+]")
        window.until(lambda: window.ghost() not in ("", first.ghost), "the other one")
        second = window.wait_for_ghost()
        ghosts = {first.ghost.strip(), second.ghost.strip()}
        assert TEXT in ghosts
        assert len(ghosts) == 2
        window.press("Tab")
        window.wait_for_document(second.preview)
        assert window.save() == second.preview
