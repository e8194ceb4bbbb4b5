--- What keys and commands do with the ghost text, whichever of the two draws it.

local Suggestion = require("foregram.suggestion")
local builtin = require("foregram.builtin")
local feedback = require("foregram.feedback")
local own = require("foregram.own")
local parts = require("foregram.parts")
local report = require("foregram.report")
local request = require("foregram.request")

local M = {}

local backend = own
own.on_shown, builtin.on_shown = feedback.shown, feedback.shown

--- Choose who draws: "auto", "builtin" or "own". A sentence, where that cannot be had.
function M.choose(name)
  local is_usable = builtin.is_usable()
  backend = name ~= "own" and is_usable and builtin or own
  if name == "builtin" and not is_usable then
    return "this Neovim has no inline completion that the plugin knows: it draws its own ghost text"
  end
end

--- Who draws.
function M.backend()
  return backend
end

--- Called when a suggestion or a next edit in a buffer was accepted whole.
function M.on_accepted(_) end

local function accept_all(buf, suggestion)
  backend.dismiss(buf)
  Suggestion.insert(suggestion)
  feedback.accepted(suggestion)
  M.on_accepted(buf)
end

local function accept_part(measure)
  return function(buf, suggestion)
    local rest = Suggestion.remaining(suggestion)
    local part = measure(rest)
    if part == rest then
      accept_all(buf, suggestion)
      return
    end
    request.cancel(buf)
    local left = Suggestion.insert_part(suggestion, part)
    backend.replace(buf, left)
    feedback.partly_accepted(left)
  end
end

--- A word is what Vim's `w` moves over.
local function next_word(text)
  return parts.next_word(vim.fn.split(text, [[\zs]]), function(character)
    return character:find("^%s") and 0 or vim.fn.charclass(character)
  end)
end

local function show_other(step)
  return function(buf, suggestion)
    if backend.count(buf) > 1 then
      backend.step(buf, step)
      return
    end
    local client = vim.lsp.get_client_by_id(suggestion.client_id)
    local text = Suggestion.remaining(suggestion)
    request.ask(client, buf, request.INVOKED, function(suggestions)
      local others = vim.tbl_filter(function(one)
        return Suggestion.remaining(one) ~= text
      end, suggestions)
      if #others == 0 then
        report.say("there is no other suggestion here")
        return
      end
      table.insert(others, 1, suggestion)
      backend.show(buf, others, step > 0 and 2 or #others)
    end)
  end
end

M.run = {
  accept = accept_all,
  accept_word = accept_part(next_word),
  accept_line = accept_part(parts.next_line),
  next = show_other(1),
  previous = show_other(-1),
  dismiss = function(buf)
    backend.dismiss(buf)
  end,
}

--- Whether there is ghost text of ours at the cursor.
function M.has_ghost_text()
  return backend.current(vim.api.nvim_get_current_buf()) ~= nil
end

--- Whether a longer text may come in place of the one that is shown or awaited in a buffer. What
--- the user asked for is awaited still.
function M.may_grow(buf)
  local kind = request.pending_kind(buf)
  if kind then
    return kind == request.AUTOMATIC
  end
  return backend.current(buf) ~= nil and backend.count(buf) == 1
end

--- Do it, now: keys.lua sees to the undo steps around it.
function M.perform(name)
  local buf = vim.api.nvim_get_current_buf()
  local suggestion = backend.current(buf)
  if suggestion then
    M.run[name](buf, suggestion)
  end
end

--- Ask at the cursor: AUTOMATIC as if a key had been typed, INVOKED for more than one completion.
function M.ask(client, buf, kind, on_nothing)
  request.ask(client, buf, kind, function(suggestions)
    if #suggestions > 0 then
      backend.show(buf, suggestions, 1)
    elseif on_nothing then
      on_nothing()
    end
  end)
end

return M
