--- Draws the plugin's own ghost text with extmarks.

local parts = require("foregram.parts")

local M = {}

M.GROUP = "ForegramGhostText"
M.namespace = vim.api.nvim_create_namespace("foregram.ghost_text")

--- Take all ghost text from a buffer.
function M.clear(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, M.namespace, 0, -1)
  end
end

local function mark(buf, row, column, text, below)
  vim.api.nvim_buf_set_extmark(buf, M.namespace, row, column, {
    virt_text = { { text, M.GROUP } },
    virt_text_pos = "inline",
    virt_lines = below,
    hl_mode = "combine",
  })
end

--- Draw text at the cursor; `covered` bytes after it stay on the screen, and the text repeats them.
function M.draw(buf, text, covered)
  M.clear(buf)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local tail = vim.api.nvim_get_current_line():sub(column + 1)
  local lines = parts.lines(text)
  local before, behind = parts.around(lines[1], tail:sub(1, covered))
  local below, tabstop = {}, vim.bo[buf].tabstop
  for index = 2, #lines do
    below[#below + 1] = { { parts.expand_tabs(lines[index], tabstop, 0), M.GROUP } }
  end
  local screen_column = vim.fn.virtcol(".") - 1
  mark(buf, row - 1, column, parts.expand_tabs(before, tabstop, screen_column), below)
  if behind ~= "" then
    mark(buf, row - 1, column + covered, behind)
  end
end

--- Define the colour, unless the user or a colour scheme has.
function M.define_colour()
  local link = vim.fn.hlexists("ComplHint") == 1 and "ComplHint" or "NonText"
  vim.api.nvim_set_hl(0, M.GROUP, { link = link, default = true })
end

return M
