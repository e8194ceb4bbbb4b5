--- How the plugin speaks: a sentence as a notification, more than that in a scratch window.

local M = {}

--- Say a sentence.
function M.say(sentence, level)
  vim.notify("foregram: " .. sentence, level or vim.log.levels.INFO)
end

--- Say what is wrong.
function M.warn(sentence)
  M.say(sentence, vim.log.levels.WARN)
end

--- Show lines in a window of their own; `q` closes it.
function M.show(title, lines)
  local name = "foregram://" .. title
  local buf = vim.fn.bufnr("^" .. name .. "$")
  if buf == -1 then
    buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buf, name)
    vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buf })
  end
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  local win = vim.fn.bufwinid(buf)
  if win == -1 then
    vim.cmd("botright " .. math.min(#lines + 1, 15) .. "split")
    vim.api.nvim_win_set_buf(0, buf)
  else
    vim.api.nvim_set_current_win(win)
  end
end

return M
