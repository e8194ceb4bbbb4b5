--- Whether the server is there, and is one that the plugin can work with. Sentences, or nil.

local parts = require("foregram.parts")

local M = {}

--- What to do where the command is not there.
function M.missing(cmd)
  if vim.fn.executable(cmd[1]) == 1 then
    return nil
  end
  local text = "the command `%s` is not there: install foregram, or name its place"
    .. " in the option `cmd`; then `:Foregram restart`"
  return text:format(cmd[1])
end

--- What is wrong with a server by its answer to `initialize`.
function M.complaint(result, cmd, oldest)
  local info = result.serverInfo or {}
  local program = table.concat(cmd, " ")
  if info.name ~= "foregram" then
    return ("`%s` is not foregram's language server; see the option `cmd`"):format(program)
  elseif parts.is_older(info.version or "0", oldest) then
    local text = "`%s` is version %s, and the plugin needs %s: `pip install --upgrade foregram`"
    return text:format(program, info.version or "unknown", oldest)
  elseif not result.capabilities.inlineCompletionProvider then
    return ("`%s` offers no inline completion"):format(program)
  end
end

return M
