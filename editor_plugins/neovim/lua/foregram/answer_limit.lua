--- A server that starts and never answers `initialize`: Neovim would wait for it for ever.

local M = {}

M.LIMIT_MS = 30000 -- a cold start on a busy machine takes some seconds

local silent = {} -- by client: it was ended because it did not answer

--- End the server, unless it answers in time.
function M.watch(client_id)
  vim.defer_fn(function()
    local client = vim.lsp.get_client_by_id(client_id)
    if client and not client.initialized and not client:is_stopped() then
      silent[client_id] = true
      client:stop(true)
    end
  end, M.LIMIT_MS)
end

--- What was the matter with a server that was ended here, or nil.
function M.complaint(client_id)
  return silent[client_id] and ("no answer for %g s"):format(M.LIMIT_MS / 1000) or nil
end

return M
