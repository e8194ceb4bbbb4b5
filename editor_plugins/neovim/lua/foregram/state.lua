--- What the server and the plugin say of themselves, and the short text for a statusline.

local server_settings = require("foregram.server_settings")

local M = {}

local function off()
  local until_s = M.snoozed_until
  local message = until_s and os.date("Snoozed until %H:%M", until_s) or "Suggestions are off"
  return { kind = "Inactive", message = message, busy = false }
end

local STOPPED = { kind = "Inactive", message = "not started", busy = false }

M.now = STOPPED

local function known(value)
  return value ~= vim.NIL and value or nil
end

local function enter(state)
  M.now = state
  vim.api.nvim_exec_autocmds("User", { pattern = "ForegramStatus", modeline = false })
  vim.cmd.redrawstatus()
end

--- Take over what the plugin found: `kind` as in didChangeStatus, and a sentence.
function M.set(kind, message)
  enter({ kind = kind, message = message, busy = false })
end

--- The server was started, and has said nothing yet.
function M.start(message)
  enter({ kind = "Normal", message = message or "starting", busy = true, state = "starting" })
end

--- Take over a status of the server; an older one says less.
function M.take(status)
  enter({
    kind = known(status.kind) or "Normal",
    message = known(status.message) or "",
    busy = status.busy == true,
    state = known(status.state),
    percent = known(status.percentage),
    model = known(status.model),
    configured_model = known(status.configuredModel),
    remedy = known(status.remedy),
  })
end

--- There is no server.
function M.reset()
  enter(STOPPED)
end

--- The state as a person sees it: the server is not asked where suggestions are off.
function M.seen()
  local is_off = M.now.kind ~= "Error" and not server_settings.is_enabled()
  return is_off and off() or M.now
end

local TEXTS = { Error = "foregram: error", Warning = "foregram: warning", Inactive = "foregram: off" }

--- The text for a statusline.
function M.text()
  local now = M.seen()
  if TEXTS[now.kind] then
    return TEXTS[now.kind]
  elseif now.state == "starting" then
    return "foregram: starting"
  elseif now.state == "loading" then
    return now.percent and ("foregram: %d %%"):format(now.percent) or "foregram: loading"
  end
  return now.busy and "foregram …" or "foregram"
end

return M
