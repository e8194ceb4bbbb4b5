--- How far the model is loaded, from the server's progress.

local state = require("foregram.state")

local M = {}

--- Take over an event of Neovim's `LspProgress`.
function M.show(event)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  local value = event.data.params and event.data.params.value
  if not client or client.name ~= "foregram" or type(value) ~= "table" then
    return
  end
  if value.kind == "end" then
    state.set_percent(nil)
  elseif value.percentage then
    state.set_percent(value.percentage)
  end
end

return M
