--- The server's settings as the user gave them, and as messages carry them.

local variables = require("foregram.variables")

local M = {}

local values = {}

--- Take the user's settings over.
function M.set(given)
  values = vim.deepcopy(given)
end

--- The settings for a message: an empty Lua table would travel as a list.
function M.for_server()
  local sent = vim.deepcopy(values)
  if type(sent.languages) == "table" and vim.tbl_isempty(sent.languages) then
    sent.languages = nil
  end
  return vim.tbl_isempty(sent) and vim.empty_dict() or sent
end

--- The environment for other commands of foregram, so that they see the same host.
function M.environment()
  return variables.of(values)
end

--- The host elsewhere that the settings name, or nil.
function M.host_url()
  return values.host_url or values.hostUrl
end

--- The model that the settings name, or nil.
function M.model()
  return values.model
end

--- Have another model from the server's next start on.
function M.choose_model(name)
  values.model = name
end

local function languages()
  return type(values.languages) == "table" and values.languages or {}
end

--- Whether completion is on, for a language or at all.
function M.is_enabled(language)
  if language == nil then
    return values.enable ~= false
  end
  return languages()[language] ~= false
end

--- Switch completion on or off, for a language or at all.
function M.enable(is_on, language)
  if language == nil then
    values.enable = is_on
    return
  end
  values.languages = vim.tbl_extend("force", languages(), { [language] = is_on })
end

return M
