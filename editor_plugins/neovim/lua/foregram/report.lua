--- How the plugin speaks: a sentence as a notification, more than that in one window for all.

local M = {}

local MOST_LINES = 15

--- Say a sentence.
function M.say(sentence, level)
  vim.notify("foregram: " .. sentence, level or vim.log.levels.INFO)
end

--- Say what is wrong.
function M.warn(sentence)
  M.say(sentence, vim.log.levels.WARN)
end

local function is_report(win)
  return vim.b[vim.api.nvim_win_get_buf(win)].foregram_report == true
end

--- The window that the user speaks of: from within a report it is the one before.
function M.subject()
  local win = vim.api.nvim_get_current_win()
  local former = vim.fn.win_getid(vim.fn.winnr("#"))
  return is_report(win) and former ~= 0 and former or win
end

local function new_buffer(name)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buf, name)
  vim.bo[buf].bufhidden = "wipe"
  vim.b[buf].foregram_report = true
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buf })
  return buf
end

local function window(num_lines)
  local height = math.min(num_lines + 1, MOST_LINES)
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if is_report(win) then
      vim.api.nvim_win_set_height(win, math.max(height, vim.api.nvim_win_get_height(win)))
      return win
    end
  end
  vim.cmd("botright " .. height .. "split")
  return vim.api.nvim_get_current_win()
end

--- Show lines in the window of reports, whichever was there before; `q` closes it.
function M.show(title, lines)
  local name = "foregram://" .. title
  local buf = vim.fn.bufnr("^" .. name .. "$")
  buf = buf ~= -1 and buf or new_buffer(name)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  local win = window(#lines)
  vim.api.nvim_set_current_win(win)
  vim.api.nvim_win_set_buf(win, buf)
end

return M
