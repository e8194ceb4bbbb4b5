--- The plugin's own ghost text: no delay, and the rest of an item stays while one types along it.

local Suggestion = require("foregram.suggestion")
local drawing = require("foregram.drawing")
local request = require("foregram.request")

local M = { name = "own" }

local shown = {} -- by buffer: the suggestions and which of them is on the screen
local asked = {} -- by buffer: the state that was asked for last

--- The suggestion on the screen.
function M.current(buf)
  local state = shown[buf]
  local suggestion = state and state.suggestions[state.index]
  return suggestion and Suggestion.remaining(suggestion) and suggestion or nil
end

--- How many suggestions there are.
function M.count(buf)
  return shown[buf] and #shown[buf].suggestions or 0
end

--- Take the ghost text away.
function M.hide(buf)
  shown[buf] = nil
  drawing.clear(buf)
end

local function redraw(buf)
  local suggestion = M.current(buf)
  if not suggestion then
    M.hide(buf)
    return
  end
  drawing.draw(buf, Suggestion.remaining(suggestion))
end

--- Show one of several suggestions.
function M.show(buf, suggestions, index)
  shown[buf] = { suggestions = suggestions, index = index }
  redraw(buf)
  local suggestion = M.current(buf)
  if suggestion then
    M.on_shown(suggestion)
  end
end

--- Show another one of the suggestions that there are.
function M.step(buf, step)
  local state = shown[buf]
  M.show(buf, state.suggestions, (state.index - 1 + step) % #state.suggestions + 1)
end

--- What is left of a suggestion takes its place.
function M.replace(buf, suggestion)
  shown[buf] = { suggestions = { suggestion }, index = 1 }
  redraw(buf)
end

--- Take the ghost text away, and wait for no answer.
function M.dismiss(buf)
  request.cancel(buf)
  M.hide(buf)
end

local function state_of(buf)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  return ("%d:%d:%d"):format(vim.api.nvim_buf_get_changedtick(buf), row, column)
end

local function ask(buf, client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  if not client then
    return
  end
  request.ask(client, buf, request.AUTOMATIC, function(suggestions)
    -- An empty answer does not take away what still fits the typed text.
    if #suggestions > 0 then
      M.show(buf, suggestions, 1)
    end
  end)
end

local function follow(buf, client_id)
  redraw(buf)
  local state = state_of(buf)
  if asked[buf] ~= state then -- one key may cause several events
    asked[buf] = state
    if M.may_ask(buf) then
      ask(buf, client_id)
    end
  end
end

local function leave(buf)
  asked[buf] = nil
  M.dismiss(buf)
end

local function group_of(buf)
  return "foregram.own." .. buf
end

--- Follow what is typed in a buffer.
function M.attach(buf, client)
  local group = vim.api.nvim_create_augroup(group_of(buf), {})
  vim.api.nvim_create_autocmd({ "InsertEnter", "CursorMovedI", "TextChangedI", "TextChangedP" }, {
    group = group,
    buffer = buf,
    callback = function()
      follow(buf, client.id)
    end,
  })
  vim.api.nvim_create_autocmd({ "InsertLeave", "BufLeave" }, {
    group = group,
    buffer = buf,
    callback = function()
      leave(buf)
    end,
  })
end

--- Leave a buffer alone.
function M.detach(buf)
  pcall(vim.api.nvim_del_augroup_by_name, group_of(buf))
  leave(buf)
end

return M
