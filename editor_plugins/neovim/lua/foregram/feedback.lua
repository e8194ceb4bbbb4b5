--- Tells the server what became of its completions, in the words of Copilot's clients.

local Suggestion = require("foregram.suggestion")
local parts = require("foregram.parts")

local M = {}

local shown_id -- of the completion that was told of last

local function notify(suggestion, method, params)
  local client = vim.lsp.get_client_by_id(suggestion.client_id)
  if client then
    client:notify(method, params)
  end
end

--- A completion is on the screen.
function M.shown(suggestion)
  local id = Suggestion.id(suggestion)
  if id ~= shown_id then
    shown_id = id
    notify(suggestion, "textDocument/didShowCompletion", { item = suggestion.item })
  end
end

--- A part of a completion was accepted; what was accepted of it before counts too.
function M.partly_accepted(rest)
  notify(rest, "textDocument/didPartiallyAcceptCompletion", {
    item = rest.item,
    acceptedLength = parts.utf16_length(rest.taken),
  })
end

--- A completion was accepted whole: run its command.
function M.accepted(suggestion)
  local client = vim.lsp.get_client_by_id(suggestion.client_id)
  local command = suggestion.item.command
  if client and command then
    client:request("workspace/executeCommand", {
      command = command.command,
      arguments = command.arguments,
    }, function() end, suggestion.buf)
  end
end

--- The user looks at a buffer.
function M.focused(client, buf)
  client:notify("textDocument/didFocus", { textDocument = { uri = vim.uri_from_bufnr(buf) } })
end

return M
