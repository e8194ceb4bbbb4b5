--- The next edit, as the server proposes it: asked for after edits, shown in its place, made by a key.

local Change = require("foregram.change")
local actions = require("foregram.actions")
local asked_edit = require("foregram.asked_edit")
local diagnostics = require("foregram.diagnostics")
local proposal = require("foregram.proposal")
local server_settings = require("foregram.server_settings")

local M = {}

local METHOD = "textDocument/copilotInlineEdit"
local ACCEPTED = "github.copilot.didAcceptNextEditSuggestionItem"
local REJECTED = "github.copilot.didRejectNextEditSuggestionItem"
local PAUSE_MS = 300 -- after an edit, as Sweep's extension for VS Code waits
local BULK = 8 -- so many lines changed at once are a paste, a formatter or a macro: as there

local states = {} -- by buffer: its client, the version asked for last, and the request

local function group_of(buf)
  return "foregram.next_edit." .. buf
end

--- Whether a server proposes edits.
function M.is_offered(client)
  local provider = client.server_capabilities.executeCommandProvider
  return vim.tbl_contains(provider and provider.commands or {}, ACCEPTED)
end

local function is_idle(buf)
  local mode = vim.api.nvim_get_mode().mode
  return buf == vim.api.nvim_get_current_buf()
    and (mode == "n" or mode == "i")
    and vim.fn.reg_recording() .. vim.fn.reg_executing() == ""
    and vim.fn.pumvisible() == 0
    and not vim.snippet.active()
    and not (mode == "i" and actions.has_ghost_text())
    and not asked_edit.is_waiting(buf)
    and not proposal.current(buf)
end

local function cancel(state)
  local request = state.request
  state.request = nil
  local client = request and vim.lsp.get_client_by_id(state.client_id)
  if client and request.id then
    client:cancel_request(request.id)
  end
end

local function run(state, command, edit)
  local client = vim.lsp.get_client_by_id(state.client_id)
  if client then
    local params = { command = command, arguments = edit.command.arguments }
    client:request("workspace/executeCommand", params, function() end)
  end
end

local function hint(change, is_near, is_open)
  local first, key = Change.place(change), proposal.keymaps.accept or ":Foregram accept"
  if not is_near then
    local row = vim.api.nvim_win_get_cursor(0)[1] - 1
    return row, ("  %s: line %d"):format(key, first + 1)
  elseif not is_open then
    return first, ("  %s: an edit"):format(key)
  end
end

local function show(client, buf, edit)
  local state = states[buf]
  if not is_idle(buf) then
    state.asked = nil -- at another moment it may be asked for again
    return
  end
  local change = Change.new(client, buf, { edit })
  if not change then
    return
  end
  client:notify("textDocument/didShowInlineEdit", { item = { command = edit.command } })
  proposal.show(change, {
    hint = hint,
    is_hinted = server_settings.next_edits() == "hint",
    jumps = true,
    on_accepted = function()
      run(state, edit.command.command, edit)
      vim.schedule(function()
        M.ask(buf)
      end)
    end,
    on_dismissed = function()
      run(state, REJECTED, edit)
    end,
    on_stale = function() end,
  })
end

--- The edit of an answer, if it is one of the buffer as that is now.
local function edit_of(answer, buf)
  local edit = answer and answer.edits and answer.edits[1]
  local document = edit and edit.textDocument
  local is_ours = document and document.uri == vim.uri_from_bufnr(buf)
  return is_ours and document.version == Change.version(buf) and edit or nil
end

local function send(client, buf, state)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = state.asked
  params.context = { triggerKind = 2 } -- automatic
  params.diagnostics = diagnostics.of(client, buf)
  local request = {}
  state.request = request
  local _, id = client:request(METHOD, params, function(err, answer)
    if states[buf] ~= state or state.request ~= request then
      return
    end
    state.request = nil
    local edit = not err and edit_of(answer, buf)
    if edit then
      show(client, buf, edit)
    end
  end, buf)
  request.id = id
end

--- Ask for the next edit in a buffer: once in each of its versions, hence not again for one that was
--- dismissed.
function M.ask(buf)
  local state, version = states[buf], Change.version(buf)
  local client = state and vim.lsp.get_client_by_id(state.client_id)
  if not client or state.asked == version or server_settings.next_edits() == "off" then
    return
  end
  if state.was_bulk or not is_idle(buf) then
    return
  end
  cancel(state)
  state.asked = version
  send(client, buf, state)
end

local function ask_in_pause(buf)
  local version = Change.version(buf)
  vim.defer_fn(function()
    if states[buf] and Change.version(buf) == version then
      M.ask(buf)
    end
  end, PAUSE_MS)
end

--- Notice what changes many lines before Neovim waits for the next key.
local function watch_lines(buf, state)
  local num_changed = 0
  vim.api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last, new_last)
      if num_changed == 0 then
        vim.schedule(function()
          state.was_bulk, num_changed = num_changed >= BULK, 0
        end)
      end
      num_changed = num_changed + math.max(last - first, new_last - first)
      return states[buf] ~= state
    end,
  })
end

--- Follow what is edited in a buffer.
function M.attach(client, buf)
  if not M.is_offered(client) then
    return
  end
  local state = { client_id = client.id, asked = Change.version(buf) }
  states[buf] = state
  watch_lines(buf, state)
  local group = vim.api.nvim_create_augroup(group_of(buf), {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
  end
  on({ "TextChanged", "TextChangedI", "TextChangedP" }, function()
    ask_in_pause(buf)
  end)
  on("InsertLeave", function()
    vim.schedule(function() -- until then, the mode is the one before
      M.ask(buf)
    end)
  end)
end

--- Leave a buffer alone.
function M.detach(buf)
  local state = states[buf]
  states[buf] = nil
  if state then
    cancel(state)
    pcall(vim.api.nvim_del_augroup_by_name, group_of(buf))
  end
end

return M
