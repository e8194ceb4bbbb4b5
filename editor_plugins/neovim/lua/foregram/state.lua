--- What the server and the plugin say of themselves, and the short text for a statusline.

local server_settings = require("foregram.server_settings")

local M = {}

local OFF = { kind = "Inactive", message = "completion is switched off", busy = false }

local function stopped()
  return { kind = "Inactive", message = "not started", busy = false, percent = nil }
end

M.now = stopped()

local function changed()
  vim.api.nvim_exec_autocmds("User", { pattern = "ForegramStatus", modeline = false })
  vim.cmd.redrawstatus()
end

--- Take over a state: `kind` as in didChangeStatus, a sentence, whether work is being done.
function M.set(kind, message, busy)
  M.now.kind, M.now.message, M.now.busy = kind, message, busy == true
  changed()
end

--- The model is loaded so far; nil: it is no longer being loaded.
function M.set_percent(percent)
  M.now.percent = percent
  changed()
end

--- There is no server.
function M.reset()
  M.now = stopped()
  changed()
end

--- The state as a person sees it: the server is not asked where completion is switched off.
function M.seen()
  local is_off = M.now.kind ~= "Error" and not server_settings.is_enabled()
  return is_off and OFF or M.now
end

--- The text for a statusline.
function M.text()
  local now = M.seen()
  if now.kind == "Error" then
    return "foregram: error"
  elseif now.percent then
    return ("foregram: %d %%"):format(now.percent)
  elseif now.kind == "Inactive" then
    return "foregram: off"
  end
  return now.busy and "foregram …" or "foregram"
end

return M
