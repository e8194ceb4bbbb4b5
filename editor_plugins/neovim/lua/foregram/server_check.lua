--- Whether the server is there, and is one that the plugin can work with. Sentences, or nil.

local parts = require("foregram.parts")

local M = {}

--- What to do where the command was not found.
function M.missing(cmd)
  if vim.fn.executable(cmd[1]) == 1 then
    return nil
  end
  local what = cmd[1] == "foregram" and "run `uv tool install foregram` and `foregram setup` in a terminal"
    or "correct the option `cmd`"
  local place = cmd[1]:find("/", 1, true) and "" or " on your PATH"
  return ("`%s` was not found%s: %s, then restart Neovim"):format(cmd[1], place, what)
end

--- What is wrong with a server by its answer to `initialize`.
function M.complaint(result, cmd, oldest)
  local info = result.serverInfo or {}
  local program = table.concat(cmd, " ")
  if info.name ~= "foregram" then
    return ("`%s` is not foregram's language server; see the option `cmd`"):format(program)
  elseif parts.is_older(info.version or "0", oldest) then
    local text = "`%s` is version %s, and the plugin needs %s: `uv tool upgrade foregram`"
    return text:format(program, info.version or "unknown", oldest)
  elseif not result.capabilities.inlineCompletionProvider then
    return ("`%s` offers no inline completion"):format(program)
  end
end

return M
