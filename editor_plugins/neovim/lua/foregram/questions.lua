--- What the server is asked when the user wants to know, or asks for a completion.

local actions = require("foregram.actions")
local client = require("foregram.client")
local report = require("foregram.report")
local request = require("foregram.request")

local M = {}

--- Run a command of the server; what it does not know has no result. False: there is no server.
function M.execute(command, arguments, on_result)
  local running = client.get()
  local params = { command = command, arguments = arguments }
  return running ~= nil
    and running:request("workspace/executeCommand", params, function(_, result)
      on_result(result or {})
    end)
end

--- Ask why nothing is shown where a window's cursor stands.
function M.why(win, on_told)
  local running = client.get()
  local place = running and vim.lsp.util.make_position_params(win, running.offset_encoding)
  return M.execute("foregram.why", { place }, on_told)
end

--- Ask for completions at the cursor; where there are none, say why.
function M.trigger()
  local buf, running = vim.api.nvim_get_current_buf(), client.get()
  local is_insert = vim.api.nvim_get_mode().mode:find("^i") ~= nil
  if not running or not running.attached_buffers[buf] or not is_insert then
    return false
  end
  actions.ask(running, buf, request.INVOKED, function()
    M.why(vim.api.nvim_get_current_win(), function(told)
      local answer = type(told.now) == "table" and told.now or (told.answers or {})[1]
      report.say("nothing to show" .. (answer and ": " .. answer.sentence or ""))
    end)
  end)
  return true
end

return M
