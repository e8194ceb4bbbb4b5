"""Another extension with ghost text of its own: it always has the same to say."""

import json
import zipfile
from pathlib import Path

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


def neighbour_extension(folder: Path) -> Path:
    """Pack it."""
    path = folder / "neighbour.vsix"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("extension.vsixmanifest", _VSIX)
        packed.writestr("extension/package.json", json.dumps(_MANIFEST))
        packed.writestr("extension/extension.js", _CODE)
    return path
