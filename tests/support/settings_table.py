"""The table of settings that the documentation shows, made of the settings themselves."""

import msgspec
from msgspec.structs import FieldInfo

from lsp_server.setting_layers import expected, metadata_of, variable_of
from lsp_server.settings import Settings

HEAD = "| setting | variable | values | default | meaning |\n| --- | --- | --- | --- | --- |\n"


def settings_table() -> str:
    return HEAD + "".join(map(_table_row, msgspec.structs.fields(Settings)))


def _table_row(field: FieldInfo) -> str:
    kind = metadata_of(field)
    meaning = (kind.extra_json_schema or {})["description"]
    default = (kind.extra or {}).get("default") or _default(field)
    variable = variable_of(field)
    return f"| `{field.name}` | `{variable}` | {expected(kind)} | {default} | {meaning} |\n"


def _default(field: FieldInfo) -> str:
    if field.default in (None, "", (), msgspec.NODEFAULT):
        return ""
    if isinstance(field.default, tuple):
        return ", ".join(f"`{one}`" for one in field.default)
    return f"`{str(field.default).lower()}`"
