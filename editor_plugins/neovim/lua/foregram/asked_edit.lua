--- An edit asked for in words: the server makes it, and it is shown before the buffer is changed.

local Change = require("foregram.change")
local drawing = require("foregram.change_drawing")
local proposal = require("foregram.proposal")
local report = require("foregram.report")

local M = {}

M.ENDED = "the server has ended meanwhile: ask again"

local CANCELLED = -32800 -- LSP's RequestCancelled

local waiting = {} -- by buffer: what was asked for last
local num_asked = 0 -- each has a token of its own for its progress

local shown = {
  hint = function(change)
    local keys = proposal.keymaps
    local accept = keys.accept or ":Foregram accept"
    local dismiss = keys.dismiss and "<Esc>" or ":Foregram dismiss"
    return Change.place(change), ("  %s accepts, %s discards"):format(accept, dismiss)
  end,
  on_accepted = function() end,
  on_dismissed = function()
    report.say("the edit is discarded")
  end,
  on_passed = function(is_stale)
    if is_stale then
      report.warn("the buffer has changed: the edit is discarded")
    end
  end,
}

local function show(running, buf, answer)
  local is_current = vim.api.nvim_buf_is_valid(buf) and Change.version(buf) == answer.version
  local change = is_current and Change.new(running, buf, answer.edits)
  if change then
    proposal.show(change, shown)
  else
    report.warn(Change.CHANGED)
  end
end

--- Whether an edit of a buffer is being made.
function M.is_waiting(buf)
  return waiting[buf] ~= nil
end

local function finish(buf)
  waiting[buf] = nil
  drawing.clear(buf)
end

--- No edit is waited for in a buffer any more; whether there was one.
function M.cancel(buf)
  local asked = waiting[buf]
  if not asked then
    return false
  end
  finish(buf)
  local running = vim.lsp.get_client_by_id(asked.client_id)
  if running then
    running:cancel_request(asked.id)
  end
  return true
end

local function arguments(buf, first, last, instruction)
  local line = vim.api.nvim_buf_get_lines(buf, last - 1, last, false)[1] or ""
  local length = vim.str_utfindex(line, "utf-16")
  num_asked = num_asked + 1
  return {
    uri = vim.uri_from_bufnr(buf),
    version = Change.version(buf),
    range = {
      start = { line = first - 1, character = 0 },
      ["end"] = { line = last - 1, character = length },
    },
    instruction = instruction,
    preview = true,
    workDoneToken = ("foregram.edit.%d"):format(num_asked),
  }
end

local function send(running, buf, first, argument)
  local asked = { client_id = running.id, token = argument.workDoneToken, row = first - 1 }
  waiting[buf] = asked
  drawing.hint(buf, asked.row, "  editing …")
  local params = { command = "foregram.edit", arguments = { argument } }
  local is_sent, id = running:request("workspace/executeCommand", params, function(err, answer)
    if waiting[buf] ~= asked then
      return
    end
    finish(buf)
    if not err then
      show(running, buf, answer)
    elseif err.code ~= CANCELLED then
      report.warn(err.message)
    end
  end, buf)
  asked.id = id
  if not is_sent then
    finish(buf)
    report.warn(M.ENDED)
  end
end

--- Ask for an edit of a buffer's lines `first` to `last`, counted from 1.
function M.ask(running, buf, first, last, instruction)
  proposal.clear(buf)
  send(running, buf, first, arguments(buf, first, last, instruction))
end

--- Take over how far the server is with an edit.
function M.progress(params)
  for buf, asked in pairs(waiting) do
    if asked.token == params.token and params.value.percentage then
      drawing.hint(buf, asked.row, ("  editing … %d %%"):format(params.value.percentage))
    end
  end
end

return M
