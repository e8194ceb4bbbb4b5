--- The plugin's own ghost text: no delay, and the rest of an item stays while one types along it.

local Suggestion = require("foregram.suggestion")
local buffers = require("foregram.buffers")
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
  if suggestion then
    drawing.draw(buf, Suggestion.remaining(suggestion))
  else
    M.hide(buf)
  end
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

local function follow(buf, client_id)
  redraw(buf)
  local state, client = state_of(buf), vim.lsp.get_client_by_id(client_id)
  local is_new = asked[buf] ~= state -- one key may cause several events
  asked[buf] = state
  if is_new and client and M.may_ask() then
    request.ask(client, buf, request.AUTOMATIC, function(suggestions)
      -- An empty answer does not take away what still fits the typed text.
      if #suggestions > 0 then
        M.show(buf, suggestions, 1)
      end
    end)
  end
end

local function leave(buf)
  asked[buf] = nil
  M.dismiss(buf)
end

--- Follow what is typed in a buffer.
function M.attach(buf, client)
  local on = buffers.follow(buf)
  on({ "InsertEnter", "CursorMovedI", "TextChangedI", "TextChangedP" }, function()
    follow(buf, client.id)
  end)
  on({ "InsertLeave", "BufLeave" }, function()
    leave(buf)
  end)
end

--- Leave a buffer alone.
function M.detach(buf)
  buffers.leave(buf)
  leave(buf)
end

return M
