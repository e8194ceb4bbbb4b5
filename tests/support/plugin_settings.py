"""The server's settings as VS Code's package.json has to declare them.

python -m tests.support.plugin_settings    # writes them into package.json

Their groups, order and sentences are package.json's own: they are for people who know no server.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect
from msgspec.structs import FieldInfo

from lsp_server.setting_layers import metadata_of
from lsp_server.settings import Settings

MANIFEST = Path("editor_plugins/vscode/package.json")

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


def main() -> None:
    """Write the settings into package.json; a new one comes last, with words to be made better."""
    manifest = json.loads(MANIFEST.read_text())
    groups = manifest["contributes"]["configuration"]
    wanted = server_properties()
    for group in groups:
        group["properties"] = {
            name: _renewed(schema, wanted.pop(name, None))
            for name, schema in group["properties"].items()
            if name in wanted or name.startswith("foregram.server.")
        }
    for name, schema in wanted.items():
        words = {"order": len(groups[-1]["properties"]), "markdownDescription": ""}
        groups[-1]["properties"][name] = schema | words
    MANIFEST.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def _renewed(schema: dict[str, Any], wanted: dict[str, Any] | None) -> dict[str, Any]:
    words = {key: value for key, value in schema.items() if key in _FOR_PEOPLE}
    return schema if wanted is None else wanted | words


if __name__ == "__main__":
    main()
