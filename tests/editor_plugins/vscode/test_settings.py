"""package.json declares the server's settings, all of them, as the server understands them."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect
from msgspec.structs import FieldInfo

from engine.model_names import ALIASES, AUTO_MODEL
from engine.version import VERSION
from lsp_server.setting_layers import is_own, metadata_of
from lsp_server.settings import Settings

ROOT = Path(__file__).parents[3]
# What runs where, and who gets the text: no repository that is opened may choose that.
_OF_THE_MACHINE = {
    "cache_folder",
    "runtime_folder",
    "model",
    "device",
    "dtype",
    "threads",
    "kv_budget_mb",
    "idle_exit_s",
    "host_url",
    "token_file",
    "insecure_http",
    "ca_file",
    "allow_secret_files",
    "disabled_globs",
    "repository",
    "debug",
}
_NOT_THERE = {
    "token",  # VS Code's secret storage holds it, not a file of settings
}

_FOR_PEOPLE = {"order", "markdownDescription", "enumDescriptions"}


def declared_settings(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of all groups, by their names."""
    groups = manifest["contributes"]["configuration"]
    return {name: one for group in groups for name, one in group["properties"].items()}


def without_words(schema: dict[str, Any]) -> dict[str, Any]:
    """What a program reads of a setting's schema."""
    return {key: value for key, value in schema.items() if key not in _FOR_PEOPLE}


def server_properties() -> dict[str, dict[str, Any]]:
    """The JSON schema of each setting, by its name in VS Code, without words for people."""
    fields = msgspec.structs.fields(Settings)
    return {
        f"foregram.{field.encode_name}": _property(field)
        for field in fields
        if field.name not in _NOT_THERE
    }


def _property(field: FieldInfo) -> dict[str, Any]:
    default = _default(field)
    schema = _schema(metadata_of(field), is_optional=default is None)
    if schema["type"] == ["string", "null"]:  # VS Code's settings page has no field for that
        schema["type"], default = "string", ""
    return {
        **schema,
        "default": default,
        "scope": "machine" if field.name in _OF_THE_MACHINE else "window",
    }


def _schema(kind: inspect.Type, *, is_optional: bool) -> dict[str, Any]:
    if isinstance(kind, inspect.Metadata):
        return _schema(kind.type, is_optional=is_optional)
    if isinstance(kind, inspect.UnionType):
        (one,) = (one for one in kind.types if one != inspect.NoneType())
        return _schema(one, is_optional=True)
    schema = _of_one(kind)
    if is_optional:
        schema["type"] = [schema["type"], "null"]
    return schema


def _of_one(kind: inspect.Type) -> dict[str, Any]:
    if isinstance(kind, inspect.LiteralType):
        return {"type": "string", "enum": list(kind.values)}
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        name = "integer" if isinstance(kind, inspect.IntType) else "number"
        bounds = {"minimum": kind.ge, "maximum": kind.le}
        exact = {key: bound for key, bound in bounds.items() if bound is not None}
        # Beyond that JavaScript does not count one by one.
        return {"type": name} | {key: min(bound, 2**53 - 1) for key, bound in exact.items()}
    return dict(_SIMPLE[type(kind)])


_SIMPLE: dict[type[inspect.Type], dict[str, Any]] = {
    inspect.BoolType: {"type": "boolean"},
    inspect.CustomType: {"type": "string"},
    inspect.StrType: {"type": "string"},
    inspect.DictType: {"type": "object", "additionalProperties": {"type": "boolean"}},
    inspect.VarTupleType: {"type": "array", "items": {"type": "string"}},
}


def _default(field: FieldInfo) -> Any:
    default = None
    if field.default is not msgspec.NODEFAULT:
        default = field.default
    elif field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    return msgspec.json.decode(msgspec.json.encode(default))  # a tuple is a list there


@pytest.fixture(scope="module")
def manifest():
    return json.loads((ROOT / "editor_plugins/vscode/package.json").read_text())


def test_package_json_has_the_servers_settings_with_their_types_and_defaults(manifest):
    ours = {
        name: without_words(schema)
        for name, schema in declared_settings(manifest).items()
        if not name.startswith("foregram.server.")
    }
    assert ours == server_properties()


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
    open_to_all = {name for name, schema in declared.items() if schema["scope"] != "machine"}
    harmless = {"layout", "lookahead", "temperature", "maxTokens", "promptTokens"}
    harmless |= {"timeLimitMs", "debounceMs", "speculate", "numCandidates", "lineEnds"}
    harmless |= {"minConfidence", "lines", "completionFallback"}
    switches = {"enable", "languages"}  # a folder that is not trusted has no say in these
    assert open_to_all == {f"foregram.{name}" for name in harmless | switches}
    restricted = manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert set(restricted) == {f"foregram.{name}" for name in switches}


def test_what_no_client_over_tcp_may_set_no_repository_may(manifest):
    declared = declared_settings(manifest)
    own = {field.encode_name for field in msgspec.structs.fields(Settings) if is_own(field)}
    assert {"hostUrl", "token", "tokenFile", "caFile", "model", "runtimeFolder"} <= own
    for name in own - {"token"}:  # which the extension itself names
        assert declared[f"foregram.{name}"]["scope"] == "machine"


def test_a_token_is_no_setting_that_is_written_into_a_file(manifest):
    declared = declared_settings(manifest)
    assert "foregram.token" not in declared


def test_extension_and_server_have_one_version(manifest):
    assert manifest["version"] == VERSION


def test_every_command_of_package_json_is_registered_and_no_other(manifest):
    source = (ROOT / "editor_plugins/vscode/src/commands.ts").read_text()
    table = source[source.index("return {") : source.index("};", source.index("return {"))]
    registered = re.findall(r"^ {4,6}(\w+): \(\)", table, flags=re.MULTILINE)
    declared = [entry["command"] for entry in manifest["contributes"]["commands"]]
    assert sorted(declared) == sorted(f"foregram.{name}" for name in registered)


def test_the_models_that_are_offered_are_names_that_the_engine_knows():
    source = (ROOT / "editor_plugins/vscode/src/modelNames.ts").read_text()
    offered = re.findall(r'\blabel: "([^"]+)"', source)
    assert offered
    assert set(offered) <= {AUTO_MODEL, *ALIASES}
