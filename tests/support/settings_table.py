"""The documentation's table of settings, made from the settings themselves."""

import msgspec
from msgspec import inspect
from msgspec.structs import FieldInfo

from lsp_server.setting_layers import expected
from lsp_server.settings import Settings, variable_of

_FOLDERS = {
    "cache_folder": "`~/.cache/foregram`",
    "runtime_folder": "`$XDG_RUNTIME_DIR/foregram`",
}


def settings_rows() -> list[str]:
    """Return the beginnings of the table's rows in Markdown; the meanings follow."""
    return [_row(field) for field in msgspec.structs.fields(Settings)]


def _row(field: FieldInfo) -> str:
    values, default = expected(inspect.type_info(field.type)), _default(field)
    return f"| `{field.name}` | `{variable_of(field.name)}` | {values} | {default} | "


def _default(field: FieldInfo) -> str:
    if field.default in (None, "", (), msgspec.NODEFAULT):
        return _FOLDERS.get(field.name, "")
    if isinstance(field.default, tuple):
        return ", ".join(f"`{one}`" for one in field.default)
    return f"`{str(field.default).lower()}`"
