--- The plugin's options: defaults, expectations and checks side by side. Knows no editor.

local M = {}

local function is_list_of_text(value)
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

local function one_of(...)
  local words = { ... }
  return function(value)
    for _, word in ipairs(words) do
      if value == word then
        return true
      end
    end
    return false
  end
end

local function is_command(value)
  return is_list_of_text(value) and #value > 0
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
  {
    name = "settings",
    default = {},
    expected = "a table of the server's settings",
    check = is_table,
  },
  { name = "filetypes", expected = "a list of filetypes", check = is_list_of_text },
  {
    name = "disabled_filetypes",
    default = {},
    expected = "a list of filetypes",
    check = is_list_of_text,
  },
  {
    name = "root_markers",
    default = { ".git", ".hg", ".foregramignore" },
    expected = "a list of file names",
    check = is_list_of_text,
  },
  {
    name = "ghost_text",
    default = "auto",
    expected = '"auto", "builtin" or "own"',
    check = one_of("auto", "builtin", "own"),
  },
  { name = "keymaps", default = {}, expected = "a table of keys, or false", check = is_table },
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

local function by_name(fields)
  local found = {}
  for _, field in ipairs(fields) do
    found[field.name] = field
  end
  return found
end

local function sorted_keys(values)
  local keys = {}
  for key in pairs(values) do
    keys[#keys + 1] = tostring(key)
  end
  table.sort(keys)
  return keys
end

local function name_unknown(given, known, prefix, problems)
  for _, key in ipairs(sorted_keys(given)) do
    if not known[key] then
      local names = table.concat(sorted_keys(known), ", ")
      problems[#problems + 1] = ("there is no option `%s%s`; there are: %s"):format(prefix, key, names)
    end
  end
end

--- The keys as the user wants them.
local function read_keymaps(given, problems)
  local keymaps = {}
  name_unknown(given, by_name(M.keymaps), "keymaps.", problems)
  for _, field in ipairs(M.keymaps) do
    local value = given[field.name]
    if value ~= nil and not is_key(value) then
      local text = "the option `keymaps.%s` must be a key or false, not a %s"
      problems[#problems + 1] = text:format(field.name, type(value))
      value = nil
    end
    keymaps[field.name] = value == nil and field.default or value
  end
  return keymaps
end

local function without_keys()
  local keymaps = {}
  for _, field in ipairs(M.keymaps) do
    keymaps[field.name] = false
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
  name_unknown(given, by_name(M.options), "", problems)
  for _, option in ipairs(M.options) do
    local value = given[option.name]
    local is_off = option.name == "keymaps" and value == false
    if value ~= nil and not is_off and not option.check(value) then
      local text = "the option `%s` must be %s, not %s"
      local shown = type(value) == "table" and "this table" or ("`%s`"):format(tostring(value))
      problems[#problems + 1] = text:format(option.name, option.expected, shown)
      value = nil
    end
    config[option.name] = value == nil and option.default or value
  end
  config.keymaps = given.keymaps == false and without_keys()
    or read_keymaps(config.keymaps or {}, problems)
  return config, problems
end

return M
