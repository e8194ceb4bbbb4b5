"""The Neovim plugin's modules that need no editor, in Neovim's Lua."""

from pathlib import Path
from typing import Any

from lupa.luajit21 import LuaRuntime

PLUGIN = Path(__file__).parents[2] / "editor_plugins/neovim"


class Loader:
    def __init__(self) -> None:
        self.lua = LuaRuntime()
        self.lua.globals().package.path = f"{PLUGIN}/lua/?.lua"

    def __call__(self, name: str) -> Any:
        return self.lua.execute((PLUGIN / f"lua/foregram/{name}.lua").read_text())

    def table(self, **values: Any) -> Any:
        """Return a Lua table, nested like `values`."""
        return self.lua.table_from(values, recursive=True)

    def lists(self, values: Any) -> Any:
        """Return the Lua value of a Python one."""
        if isinstance(values, list | dict):
            return self.lua.table_from(values, recursive=True)
        return values


load = Loader()
