--- The plugin's options: defaults, expectations and checks side by side. Knows no editor.

local M = {}

local function is_texts(value)
  if type(value) ~= "table" then
    return false
  end
  local size = 0
  for _, one in pairs(value) do
    size = size + 1
    if type(one) ~= "string" then
      return false
    end
  end
  return size == #value
end

local function is_table(value)
  return type(value) == "table"
end

local function is_keymaps(value)
  return value == false or is_table(value)
end

local function is_drawer(value)
  return value == "auto" or value == "builtin" or value == "own"
end

local function is_command(value)
  return is_texts(value) and #value > 0
end

local function is_key(value)
  return value == false or (type(value) == "string" and value ~= "")
end

--- Each option, in the order of the help.
M.options = {
  {
    name = "cmd",
    default = { "foregram", "lsp" },
    expected = "a list of strings, the command and its arguments",
    check = is_command,
  },
  { name = "settings", default = {}, expected = "a table of the server's settings", check = is_table },
  { name = "filetypes", expected = "a list of filetypes", check = is_texts },
  { name = "disabled_filetypes", default = {}, expected = "a list of filetypes", check = is_texts },
  {
    name = "root_markers",
    default = { ".git", ".hg", ".foregramignore" },
    expected = "a list of file names",
    check = is_texts,
  },
  {
    name = "ghost_text",
    default = "auto",
    expected = '"auto", "builtin" or "own"',
    check = is_drawer,
  },
  { name = "keymaps", default = {}, expected = "a table of keys, or false", check = is_keymaps },
}

--- The keys of insert mode; each may be false.
M.keymaps = {
  { name = "accept", default = "<Tab>" },
  { name = "accept_word", default = "<C-Right>" },
  { name = "accept_line", default = "<C-Down>" },
  { name = "next", default = "<M-]>" },
  { name = "previous", default = "<M-[>" },
  { name = "dismiss", default = "<C-]>" },
  { name = "trigger", default = "<M-\\>" },
}

local function sorted_keys(values)
  local keys = {}
  for key in pairs(values) do
    keys[#keys + 1] = tostring(key)
  end
  table.sort(keys)
  return keys
end

local function name_unknown(given, fields, prefix, problems)
  local known = {}
  for _, field in ipairs(fields) do
    known[field.name] = true
  end
  for _, key in ipairs(sorted_keys(given)) do
    if not known[key] then
      local names = table.concat(sorted_keys(known), ", ")
      problems[#problems + 1] = ("there is no option `%s%s`; there are: %s"):format(prefix, key, names)
    end
  end
end

--- The keys as the user wants them; false: none.
local function read_keymaps(given, problems)
  local keymaps = {}
  name_unknown(given or {}, M.keymaps, "keymaps.", problems)
  for _, field in ipairs(M.keymaps) do
    local value = given and given[field.name]
    if value ~= nil and not is_key(value) then
      local text = "the option `keymaps.%s` must be a key or false, not a %s"
      problems[#problems + 1] = text:format(field.name, type(value))
      value = nil
    end
    keymaps[field.name] = value == nil and field.default or value
  end
  return keymaps
end

--- The configuration, and a sentence for each option that is wrong; all others hold.
function M.read(given)
  local config, problems = {}, {}
  if given ~= nil and type(given) ~= "table" then
    problems[1] = ("setup{} takes a table, not a %s"):format(type(given))
  end
  given = type(given) == "table" and given or {}
  name_unknown(given, M.options, "", problems)
  for _, option in ipairs(M.options) do
    local value = given[option.name]
    if value ~= nil and not option.check(value) then
      local text = "the option `%s` must be %s, not %s"
      local shown = type(value) == "table" and "this table" or ("`%s`"):format(tostring(value))
      problems[#problems + 1] = text:format(option.name, option.expected, shown)
      value = nil
    end
    config[option.name] = value == nil and option.default or value
  end
  config.keymaps = read_keymaps(config.keymaps, problems)
  return config, problems
end

return M
