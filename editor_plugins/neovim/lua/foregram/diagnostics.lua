--- What stands against a buffer's text, by the language's own server, in the words of Copilot's clients.

local M = {}

local MOST = 64 -- as many as the server takes
local SEVERITIES = { [vim.diagnostic.severity.ERROR] = "error", [vim.diagnostic.severity.WARN] = "warning" }

local function position(client, buf, row, column)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
  local index = math.min(column, #line)
  return { line = row, character = vim.str_utfindex(line, client.offset_encoding, index, false) }
end

--- Errors and warnings of a buffer, those nearest to the cursor first.
function M.of(client, buf)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local found = vim.diagnostic.get(buf, { severity = { min = vim.diagnostic.severity.WARN } })
  table.sort(found, function(left, right)
    return math.abs(left.lnum - row) < math.abs(right.lnum - row)
  end)
  return vim.tbl_map(function(one)
    return {
      severity = SEVERITIES[one.severity],
      message = one.message,
      range = {
        start = position(client, buf, one.lnum, one.col),
        ["end"] = position(client, buf, one.end_lnum or one.lnum, one.end_col or one.col),
      },
    }
  end, vim.list_slice(found, 1, MOST))
end

return M
