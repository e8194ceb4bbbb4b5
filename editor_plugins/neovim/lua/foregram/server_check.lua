--- Whether the server is there, and is one that the plugin can work with. Sentences, or nil.

local parts = require("foregram.parts")

local M = {}

--- Says that a command was not found.
function M.not_found(program)
  return ("`%s` was not found%s"):format(program, program:find("/", 1, true) and "" or " on your PATH")
end

--- What to do where the command was not found.
function M.missing(cmd)
  if vim.fn.executable(cmd[1]) == 1 then
    return nil
  end
  local text = "%s: install foregram, or name its place in the option `cmd`; then `:Foregram start`"
  return text:format(M.not_found(cmd[1]))
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
