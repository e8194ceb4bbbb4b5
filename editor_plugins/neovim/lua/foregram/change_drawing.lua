--- Draws a change in its place: what goes is marked, what comes stands beside or below it.

local parts = require("foregram.parts")

local M = {}

M.DELETED, M.INSERTED, M.HINT = "ForegramDeleted", "ForegramInserted", "ForegramHint"
M.namespace = vim.api.nvim_create_namespace("foregram.change")

local hints = vim.api.nvim_create_namespace("foregram.hint")

local function draw_beside(buf, hunk)
  local start, deleted, inserted = parts.difference(hunk.old[1], hunk.new[1])
  local after = start + #deleted
  vim.api.nvim_buf_set_extmark(buf, M.namespace, hunk.row, start, {
    end_col = after,
    hl_group = M.DELETED,
  })
  local column = vim.fn.strdisplaywidth(hunk.old[1]:sub(1, after))
  vim.api.nvim_buf_set_extmark(buf, M.namespace, hunk.row, after, {
    virt_text = { { parts.expand_tabs(inserted, vim.bo[buf].tabstop, column), M.INSERTED } },
    virt_text_pos = "inline",
  })
end

--- Lines above the first one are only seen where the window makes room for them.
local function make_room(buf, num_lines)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    vim.api.nvim_win_call(win, function()
      if vim.fn.line("w0") == 1 then
        vim.fn.winrestview({ topfill = num_lines })
      end
    end)
  end
end

local function draw_below(buf, hunk)
  for index, line in ipairs(hunk.old) do
    local row = hunk.row + index - 1
    vim.api.nvim_buf_set_extmark(buf, M.namespace, row, 0, {
      end_row = row + 1,
      hl_group = M.DELETED,
      hl_eol = line == "",
      strict = false,
    })
  end
  local lines = vim.tbl_map(function(line)
    local text = line == "" and " " or parts.expand_tabs(line, vim.bo[buf].tabstop, 0)
    return { { text, M.INSERTED } }
  end, hunk.new)
  local row = hunk.row + #hunk.old - 1
  vim.api.nvim_buf_set_extmark(buf, M.namespace, math.max(row, 0), 0, {
    virt_lines = lines,
    virt_lines_above = row < 0,
  })
  if row < 0 then
    make_room(buf, #lines)
  end
end

--- Take all of it from a buffer.
function M.clear(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, M.namespace, 0, -1)
    vim.api.nvim_buf_clear_namespace(buf, hints, 0, -1)
  end
end

--- Draw a change.
function M.draw(change)
  for _, hunk in ipairs(change.hunks) do
    local is_line = #hunk.old == 1 and #hunk.new == 1
    local draw = is_line and draw_beside or draw_below
    draw(change.buf, hunk)
  end
end

--- Say something at the end of a row, and nothing anywhere else.
function M.hint(buf, row, text)
  vim.api.nvim_buf_clear_namespace(buf, hints, 0, -1)
  if text then
    local last = vim.api.nvim_buf_line_count(buf) - 1
    vim.api.nvim_buf_set_extmark(buf, hints, math.min(row, last), 0, {
      virt_text = { { text, M.HINT } },
    })
  end
end

--- Define the colours, unless the user or a colour scheme has.
function M.define_colours()
  for group, link in pairs({
    [M.DELETED] = "DiffDelete",
    [M.INSERTED] = "DiffAdd",
    [M.HINT] = "NonText",
  }) do
    vim.api.nvim_set_hl(0, group, { link = link, default = true })
  end
end

return M
