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
    """What a workspace may set is listed here; a new setting has to be thought about."""
    declared = manifest["contributes"]["configuration"]["properties"]
    open_to_all = {name for name, schema in declared.items() if schema["scope"] != "machine"}
    harmless = {"layout", "lookahead", "temperature", "seed", "maxTokens", "promptTokens"}
    harmless |= {"timeLimitMs", "debounceMs", "speculate", "numCandidates", "lineEnds"}
    harmless |= {"completionFallback", "rangeFromLineStart"}
    switches = {"enable", "languages"}  # a folder that is not trusted has no say in these
    assert open_to_all == {f"foregram.{name}" for name in harmless | switches}
    restricted = manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert set(restricted) == {f"foregram.{name}" for name in switches}


def test_a_token_is_no_setting_that_is_written_into_a_file(manifest):
    declared = manifest["contributes"]["configuration"]["properties"]
    assert "foregram.token" not in declared


def test_nobody_can_name_the_command_that_an_accept_runs(manifest):
    declared = manifest["contributes"]["configuration"]["properties"]
    assert "foregram.acceptCommand" not in declared


def test_extension_and_server_have_one_version(manifest):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert manifest["version"] == project["version"]


def test_every_command_of_package_json_is_registered_and_no_other(manifest):
    source = (ROOT / "editor_plugins/vscode/src/commands.ts").read_text()
    table = source[source.index("return {") : source.index("};", source.index("return {"))]
    registered = re.findall(r"^ {4,6}(\w+): \(\)", table, flags=re.MULTILINE)
    declared = [entry["command"] for entry in manifest["contributes"]["commands"]]
    assert sorted(declared) == sorted(f"foregram.{name}" for name in registered)
