--- The server's settings as environment variables. Knows no editor.

local M = {}

local SHORT = { cache_folder = "FOREGRAM_CACHE", runtime_folder = "FOREGRAM_RUNTIME" }

local function name_of(setting)
  local snake = tostring(setting):gsub("%u", "_%0"):lower()
  return SHORT[snake] or "FOREGRAM_" .. snake:upper()
end

--- A value as the server reads it: lists by commas, tables as `python=true,markdown=false`.
local function text_of(value)
  if type(value) ~= "table" then
    return tostring(value)
  end
  local texts = {}
  for key, one in pairs(value) do
    texts[#texts + 1] = type(key) == "number" and tostring(one) or ("%s=%s"):format(key, tostring(one))
  end
  if #value == 0 then
    table.sort(texts) -- a table has no order, and a variable should not change with it
  end
  return table.concat(texts, ",")
end

--- The variables of settings, by name.
function M.of(settings)
  local variables = {}
  for setting, value in pairs(settings) do
    variables[name_of(setting)] = text_of(value)
  end
  return variables
end

return M
