"""package.json declares the server's settings, all of them, as the server understands them."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.support.plugin_settings import MANIFEST, server_properties

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def manifest():
    return json.loads((ROOT / MANIFEST).read_text())


def test_package_json_has_the_servers_settings_with_their_types_defaults_and_meanings(manifest):
    """`python -m tests.support.plugin_settings` mends it."""
    declared = manifest["contributes"]["configuration"]["properties"]
    ours = {
        name: schema for name, schema in declared.items() if not name.startswith("foregram.server.")
    }
    assert ours == server_properties()


def test_no_repository_can_choose_what_runs_or_who_gets_the_text(manifest):
    declared = manifest["contributes"]["configuration"]["properties"]
    for name in ("hostUrl", "tokenFile", "caFile", "model", "server.command", "server.package"):
        assert declared[f"foregram.{name}"]["scope"] == "machine"
    restricted = manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert restricted == ["foregram.allowSecretFiles"]


def test_a_token_is_no_setting_that_is_written_into_a_file(manifest):
    assert "foregram.token" not in manifest["contributes"]["configuration"]["properties"]


def test_extension_and_server_have_one_version(manifest):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert manifest["version"] == project["version"]


def test_every_command_of_package_json_is_registered_and_no_other(manifest):
    source = (ROOT / "editor_plugins/vscode/src/commands.ts").read_text()
    table = source[source.index("return {") : source.index("};", source.index("return {"))]
    registered = re.findall(r"^ {4,6}(\w+): \(\)", table, flags=re.MULTILINE)
    declared = [entry["command"] for entry in manifest["contributes"]["commands"]]
    assert sorted(declared) == sorted(f"foregram.{name}" for name in registered)
