--- Runs other commands of the program whose language server `cmd` starts.

local client = require("foregram.client")
local report = require("foregram.report")
local server_check = require("foregram.server_check")
local server_settings = require("foregram.server_settings")

local M = {}

local function command_line(words)
  local cmd = {}
  for _, word in ipairs(client.options.cmd) do
    if word == "lsp" then
      break
    end
    cmd[#cmd + 1] = word
  end
  return vim.list_extend(cmd, words)
end

--- Run one; `on_end` gets what it printed. False, after saying so, where it cannot be run.
function M.run(words, on_end)
  local cmd, env = command_line(words), server_settings.environment()
  local missing = server_check.missing(cmd)
  if missing then
    report.warn(missing)
    return false
  end
  -- Not in a repository, whose files Python might take for its own.
  local options = { text = true, env = env, cwd = vim.uv.os_homedir() }
  local started = vim.list_extend({ vim.fn.exepath(cmd[1]) }, cmd, 2)
  local ok, problem = pcall(vim.system, started, options, function(done)
    vim.schedule(function()
      on_end(vim.trim((done.stdout or "") .. (done.stderr or "")))
    end)
  end)
  if not ok then
    report.warn(("`%s` cannot be run: %s"):format(table.concat(cmd, " "), problem))
  end
  return ok
end

return M
