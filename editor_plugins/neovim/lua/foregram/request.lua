--- Asks the server for completions: one request at a time for each buffer.

local Suggestion = require("foregram.suggestion")

local M = {}

M.METHOD = "textDocument/inlineCompletion"
M.INVOKED, M.AUTOMATIC = 1, 2

local pending = {} -- by buffer

local function suggestions_of(client, result, place)
  local found = {}
  for _, item in ipairs(result and (result.items or result) or {}) do
    found[#found + 1] = Suggestion.new(client, item, place)
  end
  return found
end

--- Nobody waits for the buffer's answer any more.
function M.cancel(buf)
  local request = pending[buf]
  pending[buf] = nil
  local client = request and vim.lsp.get_client_by_id(request.client_id)
  if client and request.id then
    client:cancel_request(request.id)
  end
end

--- What kind of request awaits its answer in a buffer; nil if none does.
function M.pending_kind(buf)
  return pending[buf] and pending[buf].kind
end

--- Whether a request was made here, not by Neovim.
function M.is_ours(client_id, request_id)
  for _, request in pairs(pending) do
    if request.client_id == client_id and request.id == request_id then
      return true
    end
  end
  return false
end

--- Ask at the cursor of the current window; `on_answer` gets the suggestions, unless a newer
--- request came between, or insert mode was left.
function M.ask(client, buf, kind, on_answer)
  local place, former = Suggestion.place(buf), pending[buf]
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = kind }
  local request = { client_id = client.id, kind = kind }
  pending[buf] = request
  local _, id = client:request(M.METHOD, params, function(err, result)
    if pending[buf] ~= request then
      return
    end
    pending[buf] = nil
    if not err and vim.api.nvim_buf_is_valid(buf) and vim.api.nvim_get_mode().mode:find("^i") then
      on_answer(suggestions_of(client, result, place))
    end
  end, buf)
  request.id = id
  -- Only now: the server lets the new request join what it generates for the former one.
  if former and former.id then
    client:cancel_request(former.id)
  end
end

return M
