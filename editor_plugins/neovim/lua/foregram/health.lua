--- `:checkhealth foregram`.

local M = {}

local function check_editor()
  local name = require("foregram.actions").backend().name
  vim.health.ok(("Neovim %s, ghost text: %s"):format(tostring(vim.version()), name))
end

local function check_command(cmd)
  local missing = require("foregram.server_check").missing(cmd)
  if missing then
    vim.health.error(missing)
  else
    vim.health.ok("command: " .. vim.fn.exepath(cmd[1]))
  end
  return not missing
end

local function check_server()
  local client, health = require("foregram.client"), vim.health
  local running, now = client.get(), require("foregram.state").now
  if not running and now.state == "starting" then
    health.info("the server is starting")
    return
  elseif not running then
    health.warn("the server does not run: " .. now.message, "Open a file, or `:Foregram start`.")
    return
  end
  local info = running.server_info or {}
  health.ok(("server %s, positions in %s"):format(info.version or "?", running.offset_encoding))
  if now.kind == "Error" then
    local what = now.remedy and require("foregram.remedies").line(now.remedy, {})
    health.error(now.message, what or "`:Foregram doctor` checks everything.")
  elseif now.kind == "Warning" then
    health.warn(now.message, "`:Foregram status` says what helps.")
  else
    health.ok(("status: %s %s"):format(now.kind, now.message))
  end
end

local function check_others()
  local client = require("foregram.client")
  local method = require("foregram.request").METHOD
  for _, other in ipairs(vim.lsp.get_clients({ method = method })) do
    if other.name ~= client.NAME then
      vim.health.warn(
        ("the server `%s` offers inline completion too"):format(other.name),
        "Its ghost text is shown where you switch it on; foregram never does."
      )
    end
  end
end

--- The language server without the plugin.
local function check_enabled(name)
  local health, builtin = vim.health, vim.lsp.inline_completion
  health.ok(("`vim.lsp.enable('%s')`; keys and commands need `require('foregram').setup()`"):format(name))
  local cmd = vim.lsp.config[name].cmd
  local is_there = type(cmd) == "function" or check_command(cmd)
  if is_there and builtin and not builtin.is_enabled() then
    health.info("`vim.lsp.inline_completion.enable()` turns Neovim's ghost text on")
  end
end

--- Examine the plugin.
function M.check()
  local client = require("foregram.client")
  vim.health.start("foregram")
  if require("foregram").is_set_up() then
    check_editor()
    if check_command(client.options.cmd) then
      check_server()
    end
    check_others()
  elseif vim.lsp.is_enabled(client.NAME) then
    check_enabled(client.NAME)
  else
    vim.health.error("setup was not called", "Call `require('foregram').setup()`.")
  end
end

return M
