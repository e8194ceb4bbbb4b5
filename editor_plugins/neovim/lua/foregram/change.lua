--- A change that the server proposes to the lines of a buffer, and how it is made.

local parts = require("foregram.parts")

local M = {}

M.CHANGED = "the buffer has changed meanwhile: ask again"

local diff = vim.text.diff or vim.diff

--- The number of the buffer's text, as the server knows it; nil where no server follows the buffer.
function M.version(buf)
  local is_followed = #vim.lsp.get_clients({ bufnr = buf }) > 0
  return is_followed and vim.lsp.util.buf_versions[buf] or nil
end

local function replace(lines, first, edit, encoding)
  local from, to = edit.range.start, edit.range["end"]
  local top, bottom = lines[from.line - first + 1], lines[to.line - first + 1]
  local before = top:sub(1, vim.str_byteindex(top, encoding, from.character, false))
  local behind = bottom:sub(vim.str_byteindex(bottom, encoding, to.character, false) + 1)
  local text = (edit.newText or edit.text):gsub("\r\n?", "\n")
  local replaced = vim.list_slice(lines, 1, from.line - first)
  vim.list_extend(replaced, parts.lines(before .. text .. behind))
  return vim.list_extend(replaced, vim.list_slice(lines, to.line - first + 2))
end

local function span(edits)
  local first, last = math.huge, -1
  for _, edit in ipairs(edits) do
    first = math.min(first, edit.range.start.line)
    last = math.max(last, edit.range["end"].line)
  end
  return first, last
end

local function by_place(left, right)
  local one, other = left.range.start, right.range.start
  return one.line > other.line or one.line == other.line and one.character > other.character
end

local function joined(lines)
  return #lines > 0 and table.concat(lines, "\n") .. "\n" or ""
end

local function add(hunks, row, old, new)
  if #old ~= #new then
    hunks[#hunks + 1] = { row = row, old = old, new = new }
    return
  end
  for index, line in ipairs(old) do
    hunks[#hunks + 1] = { row = row + index - 1, old = { line }, new = { new[index] } }
  end
end

--- What differs, from the top: rows of `old` lines, and the `new` ones for them.
local function hunks_of(first, old, new)
  local hunks = {}
  for _, place in ipairs(diff(joined(old), joined(new), { result_type = "indices" })) do
    local old_start, num_old, new_start, num_new = unpack(place)
    local row = first + old_start - (num_old > 0 and 1 or 0)
    local left = vim.list_slice(old, old_start, old_start + num_old - 1)
    add(hunks, row, left, vim.list_slice(new, new_start, new_start + num_new - 1))
  end
  return hunks
end

--- The change that edits of `client` make in a buffer; nil where they change nothing, or lie outside
--- of it.
function M.new(client, buf, edits)
  local first, last = span(edits)
  local num_lines = vim.api.nvim_buf_line_count(buf)
  if first < 0 or first > last or last > num_lines then
    return nil
  end
  local old = vim.api.nvim_buf_get_lines(buf, first, last + 1, false)
  local lines = vim.list_slice(old)
  if last == num_lines then
    lines[#lines + 1] = "" -- what stands behind the last newline
  end
  table.sort(edits, by_place)
  for _, edit in ipairs(edits) do
    lines = replace(lines, first, edit, client.offset_encoding)
  end
  if last == num_lines and lines[#lines] == "" then
    lines[#lines] = nil
  end
  local hunks = hunks_of(first, old, lines)
  local change = { buf = buf, version = M.version(buf), hunks = hunks }
  return #hunks > 0 and change or nil
end

--- Whether the buffer is still as the change was made for.
function M.is_current(change)
  return M.version(change.buf) == change.version
end

--- The rows of the first and the last changed line.
function M.rows(change)
  local last = change.hunks[#change.hunks]
  return change.hunks[1].row, last.row + math.max(#last.old - 1, 0)
end

--- Where it begins: a row of the buffer, and a column.
function M.place(change)
  local hunk = change.hunks[1]
  local is_line = #hunk.old == 1 and #hunk.new == 1
  local column = is_line and parts.difference(hunk.old[1], hunk.new[1]) or 0
  return math.min(hunk.row, vim.api.nvim_buf_line_count(change.buf) - 1), column
end

--- Write it; the row and the column where the last new text ends.
function M.apply(change)
  local row, column, shift = 0, 0, 0
  for _, hunk in ipairs(change.hunks) do
    row = hunk.row + shift
    if #hunk.old == 1 and #hunk.new == 1 then
      local start, deleted, inserted = parts.difference(hunk.old[1], hunk.new[1])
      vim.api.nvim_buf_set_text(change.buf, row, start, row, start + #deleted, { inserted })
      column = start + #inserted
    else
      vim.api.nvim_buf_set_lines(change.buf, row, row + #hunk.old, true, hunk.new)
      column = #(hunk.new[#hunk.new] or "")
      shift = shift + #hunk.new - #hunk.old
    end
    row = row + math.max(#hunk.new - 1, 0)
  end
  return row, column
end

return M
