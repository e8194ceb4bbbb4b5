--- `:checkhealth foregram`.

local M = {}

local function check_editor()
  local name = require("foregram.actions").backend().name
  vim.health.ok(("Neovim %s, ghost text: %s"):format(tostring(vim.version()), name))
end

local function check_command(cmd)
  local health = vim.health
  local program = vim.fn.exepath(cmd[1])
  if program == "" then
    health.error(require("foregram.server_check").not_found(cmd[1]), {
      "Install foregram: `python -m pip install .` in its folder.",
      "Or name its place: `require('foregram').setup{ cmd = { '/path/to/foregram', 'lsp' } }`.",
    })
  else
    health.ok("command: " .. program)
  end
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
    health.error(now.message, "`:Foregram doctor` checks everything.")
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

--- Examine the plugin.
function M.check()
  vim.health.start("foregram")
  if not require("foregram").is_set_up() then
    vim.health.error("setup was not called", "Call `require('foregram').setup{}`.")
    return
  end
  check_editor()
  check_command(require("foregram.client").options.cmd)
  check_server()
  check_others()
end

return M
