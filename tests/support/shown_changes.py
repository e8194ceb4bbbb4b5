"""Changes as a real Neovim shows them, and edits as a server sends them."""

from typing import Any

from tests.support.neovim import Neovim

TEXT = "def area(w, h):\n    return w * h\n\n\nprint('𝄞', area(2, 3))\n"
# What a change shows: marked text, texts beside it, lines below it, and hints, from the top.
_SHOWN = """
local found, names = {}, vim.api.nvim_get_namespaces()
for _, name in ipairs({ "foregram.change", "foregram.hint" }) do
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, names[name], 0, -1, { details = true })) do
    local row, column, how = mark[2], mark[3], mark[4]
    if how.hl_group then
      local last, behind = how.end_row, how.end_col
      if last > vim.api.nvim_buf_line_count(0) - 1 then last, behind = row, -1 end
      local marked = vim.api.nvim_buf_get_text(0, row, column, last, behind, {})
      found[#found + 1] = "-" .. table.concat(marked, "\\n")
    end
    for _, chunk in ipairs(how.virt_text or {}) do
      found[#found + 1] = (name == "foregram.hint" and ">" or "+") .. chunk[1]
    end
    for _, line in ipairs(how.virt_lines or {}) do found[#found + 1] = "+" .. line[1][1] .. "\\n" end
  end
end
return found
"""


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> dict[str, Any]:
    """Return an edit from (line, character) to (line, character), as the protocol counts them."""
    names = ("line", "character")
    where = {
        "start": dict(zip(names, start, strict=True)),
        "end": dict(zip(names, end, strict=True)),
    }
    return {"range": where, "newText": text}


def version(editor: Neovim) -> int:
    """Return the number of the buffer's text, as the server knows it."""
    return int(editor.lua("return vim.lsp.util.buf_versions[vim.api.nvim_get_current_buf()]"))


def shown(editor: Neovim) -> list[str]:
    """Return what is marked (`-`), comes beside or below (`+`), and is said at a line's end (`>`)."""
    return list(editor.lua(_SHOWN))


def until_shown(editor: Neovim, *wanted: str) -> None:
    """Wait until just this change is shown, whatever is said at a line's end."""
    editor.until(
        lambda: [one for one in shown(editor) if one[0] != ">"] == [*wanted], f"{wanted}", 20
    )


def until_said(editor: Neovim, words: str) -> None:
    """Wait for a notification with these words."""
    editor.until(lambda: any(words in one for one in editor.said()), words, 20)
