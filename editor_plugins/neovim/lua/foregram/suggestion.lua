--- One completion as it stands in a buffer: an item of the server, and where it belongs.

local parts = require("foregram.parts")

local M = {}

--- Where a request is made: what of the buffer an answer is measured against.
function M.place(buf)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  return { buf = buf, row = row - 1, column = column, line = vim.api.nvim_get_current_line() }
end

local function byte_column(place, position, encoding)
  if position.line ~= place.row then
    return nil
  end
  return vim.str_byteindex(place.line, encoding, position.character, false)
end

--- The suggestion that an item of `client` is at the place it was asked for, or nil where the item
--- is not one that the plugin can show.
function M.new(client, item, place)
  local first, last = place.column, place.column
  if item.range then
    first = byte_column(place, item.range.start, client.offset_encoding)
    last = byte_column(place, item.range["end"], client.offset_encoding)
  end
  if type(item.insertText) ~= "string" or not first or not last or first > place.column then
    return nil
  end
  local tail = place.line:sub(place.column + 1)
  return {
    client_id = client.id,
    item = item,
    buf = place.buf,
    row = place.row,
    text = item.insertText,
    start = first,
    before = place.line:sub(1, first),
    tail = tail,
    covered = tail:sub(1, math.max(last - place.column, 0)),
    taken = "", -- what of the item's text stands before `text`, accepted part by part
  }
end

--- What is left of it at the cursor: the text, and the bytes after the cursor that it replaces.
function M.remaining(suggestion)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  if vim.api.nvim_get_current_buf() ~= suggestion.buf or row - 1 ~= suggestion.row then
    return nil
  end
  return parts.remaining(suggestion, vim.api.nvim_get_current_line(), column)
end

local function put(suggestion, text, covered)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local lines = parts.lines(text)
  local last = { row - 1, column + covered }
  vim.api.nvim_buf_set_text(suggestion.buf, row - 1, column, last[1], last[2], lines)
  local moved = #lines == 1 and column or 0
  vim.api.nvim_win_set_cursor(0, { row + #lines - 1, moved + #lines[#lines] })
end

--- Write all that is left of it.
function M.insert(suggestion)
  local rest, covered = M.remaining(suggestion)
  put(suggestion, rest, covered)
end

--- Write a part of what is left; the suggestion that the rest of it is from there on.
function M.insert_part(suggestion, part)
  local rest = M.remaining(suggestion)
  local typed = suggestion.text:sub(1, #suggestion.text - #rest)
  put(suggestion, part, 0)
  local place = M.place(suggestion.buf)
  return vim.tbl_extend("force", suggestion, {
    row = place.row,
    text = rest:sub(#part + 1),
    start = place.column,
    before = place.line:sub(1, place.column),
    taken = suggestion.taken .. typed .. part,
  })
end

--- What names the completion: the argument of the command that tells of its accept.
function M.id(suggestion)
  local command = suggestion.item.command
  return command and command.arguments and command.arguments[1] or suggestion.item
end

return M
