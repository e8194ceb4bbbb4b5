"""Polls the ghost text inside Neovim, as polling from outside is too slow."""

from dataclasses import dataclass

from tests.support.neovim import VIEW, Neovim

POLL_MS = 20

# Scheduled looks run when Neovim waits for the next key: by then the plugin has followed the last
# one, and its text is drawn.
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
  local before, ghost = unpack((function() {VIEW} end)())
  local watched = _G.watched
  watched.num_looks = watched.num_looks + 1
  if ghost == "" and before ~= wanted then
    table.insert(watched.gaps, before)
  elseif before .. ghost ~= wanted then
    table.insert(watched.others, before .. "|" .. ghost)
  end
end
_G.watch = vim.uv.new_timer()
_G.watch:start(0, {POLL_MS}, vim.schedule_wrap(look))
"""
_STOP = """
_G.watch:close()
vim.api.nvim_del_augroup_by_name("test.watch")
return { _G.watched.num_looks, _G.watched.num_answers, _G.watched.gaps, _G.watched.others }
"""


@dataclass(frozen=True)
class Watched:
    num_looks: int
    num_answers: int  # answers of the server to requests for ghost text
    gaps: list[str]  # the text before the cursor whenever there was no ghost text
    others: list[str]  # other texts on the screen, `|` at the cursor


def watch(editor: Neovim, wanted: str) -> None:
    """Begin to watch that the text before the cursor and the ghost text always make up `wanted`."""
    editor.lua(_WATCH, wanted)


def watched(editor: Neovim) -> Watched:
    """Stop, and return the record."""
    return Watched(*editor.lua(_STOP))
