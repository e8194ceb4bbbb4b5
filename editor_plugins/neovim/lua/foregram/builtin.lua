--- Neovim's own ghost text, `vim.lsp.inline_completion` of 0.12, behind the functions of own.lua.
---
--- It knows neither parts of a completion nor candidates on demand, and while it waits 200 ms after
--- a key it shows and accepts what no longer fits. That is mended here, through its inner state;
--- where that is not as expected, `is_usable` says no.

local Suggestion = require("foregram.suggestion")
local buffers = require("foregram.buffers")
local request = require("foregram.request")

local M = { name = "builtin" }

local places = {} -- by request id: where Neovim asked
local last = {} -- by buffer: the suggestion shown last
local suggestions_by_item = setmetatable({}, { __mode = "k" })

local function completors()
  local ok, capability = pcall(require, "vim.lsp._capability")
  local all = ok and type(capability) == "table" and capability.all
  return type(all) == "table" and all.inline_completion or nil
end

--- Whether this Neovim has inline completion, built as this file expects.
function M.is_usable()
  local is_there = vim.lsp.inline_completion ~= nil
  local class = is_there and completors()
  if type(class) ~= "table" or type(class.active) ~= "table" then
    return false
  end
  for _, name in ipairs({ "abort", "count_items", "get_item", "hide", "select" }) do
    if type(class[name]) ~= "function" then
      return false
    end
  end
  return true
end

local function completor_of(buf)
  local class = completors()
  return class and class.active[buf]
end

local function is_ours(current)
  local client = current and vim.lsp.get_client_by_id(current.client_id)
  return client ~= nil and client.name == "foregram"
end

--- The suggestion on the screen.
function M.current(buf)
  local completor = completor_of(buf)
  if not completor or not is_ours(completor.current) then
    return nil
  end
  local _, item = completor:get_item(completor.current._index)
  local suggestion = item and suggestions_by_item[item]
  return suggestion and Suggestion.remaining(suggestion) and suggestion or nil
end

--- Accept the ghost text of another server, as Neovim does; whether there is any.
function M.accept_foreign(buf)
  local completor = completor_of(buf)
  local is_foreign = completor and completor.current and not is_ours(completor.current)
  return is_foreign and vim.lsp.inline_completion.get({ bufnr = buf }) or false
end

--- How many suggestions there are.
function M.count(buf)
  local completor = completor_of(buf)
  return completor and completor:count_items() or 0
end

--- Take the ghost text away.
function M.hide(buf)
  local completor = completor_of(buf)
  last[buf] = nil
  if completor then
    completor.current = nil
    completor:hide()
  end
end

--- Take the ghost text away, and wait for no answer.
function M.dismiss(buf)
  request.cancel(buf)
  local completor = completor_of(buf)
  last[buf] = nil
  if completor then
    completor:abort()
  end
end

local function hold(buf, client_id, items, index)
  local completor = completor_of(buf)
  if completor and completor.client_state[client_id] then
    completor.client_state[client_id].items = items
    completor:select(index)
    last[buf] = M.current(buf)
  end
end

--- Show one of several suggestions instead of what Neovim holds of our server.
function M.show(buf, suggestions, index)
  local items = {}
  for _, suggestion in ipairs(suggestions) do
    suggestions_by_item[suggestion.item] = suggestion
    items[#items + 1] = suggestion.item
  end
  hold(buf, suggestions[1].client_id, items, index)
  M.on_shown(suggestions[index])
end

--- Show another one of the suggestions that there are.
function M.step(buf, step)
  local completor = completor_of(buf)
  completor:select((completor.current._index - 1 + step) % completor:count_items() + 1)
  last[buf] = M.current(buf)
  if last[buf] then
    M.on_shown(last[buf])
  end
end

--- What is left of a suggestion takes its place, as an item at the cursor.
function M.replace(buf, suggestion)
  local client = vim.lsp.get_client_by_id(suggestion.client_id)
  local rest, covered = Suggestion.remaining(suggestion)
  if not client or not rest then
    M.hide(buf)
    return
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local column = vim.api.nvim_win_get_cursor(0)[2]
  local line = vim.api.nvim_get_current_line()
  local last_character = vim.str_utfindex(line, client.offset_encoding, column + covered, false)
  local last_position = { line = params.position.line, character = last_character }
  local item = {
    insertText = rest,
    range = { start = params.position, ["end"] = last_position },
    command = suggestion.item.command,
  }
  suggestions_by_item[item] = suggestion
  hold(buf, suggestion.client_id, { item }, 1)
end

--- Neovim has taken over an answer to what it asked at a place.
local function adopt(buf, client_id, place)
  local completor = completor_of(buf)
  local client = vim.lsp.get_client_by_id(client_id)
  local state = completor and completor.client_state[client_id]
  if not client or not state or not vim.api.nvim_get_mode().mode:find("^i") then
    return
  end
  for _, item in ipairs(state.items or {}) do
    suggestions_by_item[item] = suggestions_by_item[item] or Suggestion.new(client, item, place)
  end
  local suggestion, former = M.current(buf), last[buf]
  if suggestion then
    last[buf] = suggestion
    M.on_shown(suggestion)
  elseif former and Suggestion.remaining(former) then
    M.replace(buf, former) -- the answer was empty or came too late; what is on the screen still fits
  elseif is_ours(completor.current) then
    M.hide(buf)
  end
end

local function watch_requests(event)
  local data = event.data
  local asked = data.request
  local client = vim.lsp.get_client_by_id(data.client_id)
  if asked.method ~= request.METHOD or not client or client.name ~= "foregram" then
    return
  end
  local key = data.client_id .. ":" .. data.request_id
  if asked.type == "pending" and vim.api.nvim_get_current_buf() == asked.bufnr then
    places[key] = Suggestion.place(asked.bufnr)
    return
  end
  local place = places[key]
  places[key] = nil
  if place and asked.type == "complete" and not request.is_ours(data.client_id, data.request_id) then
    -- After Neovim's own handler, which runs next.
    vim.schedule(function()
      adopt(asked.bufnr, data.client_id, place)
    end)
  end
end

local function follow(buf)
  local completor = completor_of(buf)
  if completor and is_ours(completor.current) and not M.current(buf) then
    M.hide(buf)
  end
end

--- Keep other servers out of this buffer's ghost text, unless the user has switched theirs on.
local function keep_out(buf, client)
  local enabled = client._enabled_capabilities
  local is_chosen = type(enabled) == "table" and enabled.inline_completion ~= nil
  local is_on = vim.lsp.inline_completion.is_enabled()
  if client.name ~= "foregram" and client:supports_method(request.METHOD, buf)
    and not is_chosen and not is_on
  then
    vim.lsp.inline_completion.enable(false, { client_id = client.id })
  end
end

--- Let Neovim show completions in a buffer.
function M.attach(buf)
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = buf })) do
    keep_out(buf, client)
  end
  local on = buffers.follow(buf)
  on("LspRequest", watch_requests)
  on({ "CursorMovedI", "TextChangedI", "TextChangedP" }, function()
    follow(buf)
  end)
  on({ "InsertLeave", "BufLeave" }, function()
    M.dismiss(buf)
  end)
  on("LspAttach", function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client then
      keep_out(buf, client)
    end
  end)
  vim.lsp.inline_completion.enable(true, { bufnr = buf })
end

--- Leave a buffer alone.
function M.detach(buf)
  buffers.leave(buf)
  M.dismiss(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.lsp.inline_completion.enable(false, { bufnr = buf })
  end
end

return M
