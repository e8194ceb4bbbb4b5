--- Which buffers the server gets, what happens in them, and the folders that they stand in.

local M = {}

--- Buffers without a name share one address in the protocol, so only one at a time has the server.
local function reason_not_unnamed(buf, client)
  if vim.api.nvim_buf_get_name(buf) ~= "" then
    return nil
  end
  for other in pairs(client and client.attached_buffers or {}) do
    local is_valid = other ~= buf and vim.api.nvim_buf_is_valid(other)
    if is_valid and vim.api.nvim_buf_get_name(other) == "" then
      return "the buffer has no name, and neither has another one that is completed in: save it"
    end
  end
end

--- Why a buffer is not completed in, or nil.
function M.reason_not(buf, config, client)
  local filetype = vim.bo[buf].filetype
  if vim.bo[buf].buftype ~= "" then
    return "the buffer is not a file"
  elseif not vim.bo[buf].modifiable then
    return "the buffer cannot be changed"
  elseif config.filetypes and not vim.tbl_contains(config.filetypes, filetype) then
    return ("the option `filetypes` does not name `%s`"):format(filetype)
  elseif vim.tbl_contains(config.disabled_filetypes, filetype) then
    return ("the option `disabled_filetypes` names `%s`"):format(filetype)
  end
  return reason_not_unnamed(buf, client)
end

local function group_of(buf)
  return "foregram.ghost_text." .. buf
end

--- Follow what happens in a buffer, and nothing that was followed before: a function for it, which
--- takes events and what to do then.
function M.follow(buf)
  local group = vim.api.nvim_create_augroup(group_of(buf), {})
  return function(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
  end
end

--- Follow it no more.
function M.leave(buf)
  pcall(vim.api.nvim_del_augroup_by_name, group_of(buf))
end

--- Tell of a folder. One client has all of them: the server reads their ignore files.
function M.enter_folder(client, root)
  local uri = root and vim.uri_from_fname(root)
  for _, folder in ipairs(client.workspace_folders or {}) do
    if folder.uri == uri then
      return
    end
  end
  if uri and client.initialized then
    local folder = { uri = uri, name = root }
    client.workspace_folders = vim.list_extend(client.workspace_folders or {}, { folder })
    local event = { added = { folder }, removed = {} }
    client:notify("workspace/didChangeWorkspaceFolders", { event = event })
  end
end

return M
