"""package.json declares the server's settings, all of them, as the server understands them."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine import VERSION
from lsp_server.settings import SHARED, Settings

ROOT = Path(__file__).parents[3]
_ELSEWHERE = {"order", "markdownDescription", "enumDescriptions", "scope"}  # what others test


def declared_settings(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of all groups, by their names."""
    groups = manifest["contributes"]["configuration"]
    return {name: one for group in groups for name, one in group["properties"].items()}


def server_settings() -> dict[str, dict[str, Any]]:
    """The JSON schema of each setting, by its name in VS Code."""
    paths = {"type": "string"}
    _, found = msgspec.json.schema_components([Settings], schema_hook=lambda _: paths)
    properties = json.loads(msgspec.json.encode(found))["Settings"]["properties"]
    del properties["token"]  # VS Code's secret storage holds it, not a file of settings
    return {f"foregram.{name}": _as_in_vscode(schema) for name, schema in properties.items()}


def _as_in_vscode(schema: dict[str, Any]) -> dict[str, Any]:
    """Without words and patterns; with null beside a text, its page would show a link to a file."""
    kind, *null = schema.get("anyOf", [schema])
    made = {"type": "string", "default": None} | schema | kind
    if made["default"] is None and made["type"] == "string":
        made["default"] = ""
    elif null:
        made["type"] = [made["type"], "null"]
    return {key: made[key] for key in made if key not in ("anyOf", "description", "pattern")}


@pytest.fixture(scope="module")
def manifest():
    return json.loads((ROOT / "editor_plugins/vscode/package.json").read_text())


def test_package_json_has_the_servers_settings_with_their_types_and_defaults(manifest):
    ours = {
        name: {key: schema[key] for key in schema if key not in _ELSEWHERE}
        for name, schema in declared_settings(manifest).items()
        if not name.startswith("foregram.server.")
    }
    assert ours == server_settings()


def test_the_settings_page_has_a_field_for_each_text_and_each_list(manifest):
    """With null beside them VS Code shows a link to the file of settings."""
    for name, schema in declared_settings(manifest).items():
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert "null" not in kinds or kinds[0] in ("integer", "number"), name


def test_the_settings_page_is_in_groups_and_in_an_order_of_its_own(manifest):
    groups = manifest["contributes"]["configuration"]
    assert [group["order"] for group in groups] == list(range(len(groups)))
    for group in groups:
        assert group["title"]
        orders = [schema["order"] for schema in group["properties"].values()]
        assert orders == list(range(len(orders)))


def test_each_setting_is_explained_in_whole_sentences_and_so_is_each_choice(manifest):
    for name, schema in declared_settings(manifest).items():
        choices = schema.get("enumDescriptions", [])
        assert len(choices) == len(schema.get("enum", [])), name
        for text in (schema["markdownDescription"], *choices):
            assert re.fullmatch(r"[A-Z].*\.", text), name


def test_no_repository_can_choose_what_runs_or_who_gets_the_text(manifest):
    """What a workspace may set is listed here; a new setting has to be thought about."""
    declared = declared_settings(manifest)
    assert {schema["scope"] for schema in declared.values()} <= {"machine", "window"}
    open_to_all = {name for name, schema in declared.items() if schema["scope"] != "machine"}
    harmless = {"layout", "lookahead", "temperature", "maxTokens", "promptTokens"}
    harmless |= {"timeLimitMs", "debounceMs", "speculate", "numCandidates", "lineEnds"}
    harmless |= {"minConfidence", "lines", "completionFallback", "nextEdits"}
    switches = {"enable", "languages"}  # a folder that is not trusted has no say in these
    assert open_to_all == {f"foregram.{name}" for name in harmless | switches}
    restricted = manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert set(restricted) == {f"foregram.{name}" for name in switches}


def test_what_no_client_over_tcp_may_set_no_repository_may(manifest):
    declared = declared_settings(manifest)
    fields = msgspec.structs.fields(Settings)
    own = {field.encode_name for field in fields if field.name not in SHARED}
    assert {"hostUrl", "token", "tokenFile", "caFile", "model", "runtimeFolder"} <= own
    for name in own - {"token"}:  # which the extension itself names
        assert declared[f"foregram.{name}"]["scope"] == "machine"


def test_extension_and_server_have_one_version(manifest):
    assert manifest["version"] == VERSION


def test_every_command_of_package_json_is_registered_and_no_other(manifest):
    source = (ROOT / "editor_plugins/vscode/src/commands.ts").read_text()
    table = source[source.index("return {") : source.index("};", source.index("return {"))]
    registered = re.findall(r"^ {4,6}(\w+): \(\)", table, flags=re.MULTILINE)
    declared = [entry["command"] for entry in manifest["contributes"]["commands"]]
    assert sorted(declared) == sorted(f"foregram.{name}" for name in registered)
