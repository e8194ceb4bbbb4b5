--- The keys of insert mode. Each does what it did before where there is nothing to accept.

local actions = require("foregram.actions")
local asked_edit = require("foregram.asked_edit")
local builtin = require("foregram.builtin")
local proposal = require("foregram.proposal")

local M = {}

-- A key that changes text gets an undo step of its own.
local CHANGES = { accept = true, accept_word = true, accept_line = true }
local PERFORM = "<Cmd>lua require('foregram.actions').perform('%s')<CR>"
local ON_CHANGE = "<Cmd>lua require('foregram.proposal').%s(vim.api.nvim_get_current_buf())<CR>"
local FOR_CHANGES = { accept = true, dismiss = true }

local function type_first(keys, mode)
  local typed = vim.api.nvim_replace_termcodes(keys, true, false, true)
  vim.api.nvim_feedkeys(typed, mode .. "i", false)
end

local function has_chosen_from_menu()
  return vim.fn.pumvisible() == 1 and vim.fn.complete_info({ "selected" }).selected >= 0
end

local function type_action(name, keys)
  type_first(CHANGES[name] and "<C-g>u" .. keys .. "<C-g>u" or keys, "n")
  return true
end

local function act_on_change(name)
  local buf = vim.api.nvim_get_current_buf()
  if name == "dismiss" and asked_edit.cancel(buf) then
    return true
  elseif not FOR_CHANGES[name] or not proposal.current(buf) then
    return false
  elseif vim.api.nvim_get_mode().mode:find("^i") then
    return type_action(name, ON_CHANGE:format(name))
  end
  proposal[name](buf)
  return true
end

--- Do something with the ghost text, or else with a change; false where there is neither. In insert
--- mode it is done by keys, before what is typed next: only they begin undo steps.
function M.act(name)
  local is_insert = vim.api.nvim_get_mode().mode:find("^i")
  if is_insert and actions.has_ghost_text() then
    return type_action(name, PERFORM:format(name))
  elseif act_on_change(name) then
    return true
  end
  local is_builtin = is_insert and name == "accept" and actions.backend() == builtin
  return is_builtin and builtin.accept_foreign(vim.api.nvim_get_current_buf()) or false
end

--- Keep what a key was mapped to before, under a name that is never typed.
local function keep_former(key, name)
  local former = vim.fn.maparg(key, "i", false, true)
  if vim.tbl_isempty(former) or former.buffer == 1 or former.desc == "foregram: " .. name then
    return nil
  end
  local plug = "<Plug>(foregram-former-" .. name .. ")"
  former.lhs = plug
  former.lhsraw = vim.api.nvim_replace_termcodes(plug, true, false, true)
  former.lhsrawalt = nil
  vim.fn.mapset("i", false, former)
  return plug
end

local function map(key, name, act)
  local former = keep_former(key, name)
  vim.keymap.set("i", key, function()
    if has_chosen_from_menu() or not act(name) then
      type_first(former or key, former and "m" or "n")
    end
  end, { desc = "foregram: " .. name })
end

--- Map the keys that are not false.
function M.map_all(keymaps, trigger)
  proposal.keymaps = keymaps
  for name, key in pairs(keymaps) do
    if key then
      map(key, name, name == "trigger" and trigger or M.act)
    end
  end
end

return M
