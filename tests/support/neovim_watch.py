"""Looks at the ghost text all the time, inside Neovim: a look from outside comes too seldom."""

from dataclasses import dataclass

from tests.support.neovim import VIEW, Neovim

POLL_MS = 20

# Scheduled looks run when Neovim waits for the next key: the plugin has followed the last one, and
# what is looked at is what is drawn.
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
    """What was seen."""

    num_looks: int
    num_answers: int  # of the server, to requests for ghost text
    gaps: list[str]  # the text before the cursor when there was no ghost text
    others: list[str]  # what was shown instead, `|` at the cursor


def watch(editor: Neovim, wanted: str) -> None:
    """Begin: the text before the cursor and the ghost text shall make up `wanted` all the time."""
    editor.lua(_WATCH, wanted)


def watched(editor: Neovim) -> Watched:
    """End, and tell."""
    return Watched(*editor.lua(_STOP))
