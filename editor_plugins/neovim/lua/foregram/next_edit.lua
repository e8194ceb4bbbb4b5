--- The next edit, as the server proposes it: asked for after edits, shown in its place, made by a key.

local Change = require("foregram.change")
local actions = require("foregram.actions")
local asked_edit = require("foregram.asked_edit")
local proposal = require("foregram.proposal")

local M = {}

local METHOD = "textDocument/copilotInlineEdit"
local ACCEPTED = "github.copilot.didAcceptNextEditSuggestionItem"
local REJECTED = "github.copilot.didRejectNextEditSuggestionItem"
local IGNORED = "github.copilot.didIgnoreNextEditSuggestionItem"
local PAUSE_MS = 300 -- after an edit, as Sweep's extension for VS Code waits
local NEAR_LINES = 10 -- between an edit and a diagnostic that it may have caused, as far as the server looks
local TROUBLES = { severity = { min = vim.diagnostic.severity.WARN } }

-- By buffer: `client_id`; the version `asked` for last; the row `edited` last, if anything was since
-- an edit was dismissed; and the messages of known `troubles`.
local states = {}

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

local function hint(change, is_near, is_open)
  local first, key = Change.place(change), proposal.keymaps.accept or ":Foregram accept"
  if not is_near then
    local row = vim.api.nvim_win_get_cursor(0)[1] - 1
    return row, ("  %s: line %d"):format(key, first + 1)
  elseif not is_open then
    return first, ("  %s: an edit"):format(key)
  end
end

local function show(client, buf, edit, is_hinted)
  local change = Change.new(client, buf, { edit })
  if not change then
    return
  end
  local function tell(command)
    local params = { command = command, arguments = edit.command.arguments }
    client:request("workspace/executeCommand", params, function() end)
  end
  client:notify("textDocument/didShowInlineEdit", { item = { command = edit.command } })
  proposal.show(change, {
    hint = hint,
    is_hinted = is_hinted,
    jumps = true,
    on_accepted = function()
      tell(edit.command.command)
      actions.on_accepted(buf)
    end,
    on_dismissed = function()
      tell(REJECTED)
      states[buf].edited = nil
    end,
    on_passed = function()
      tell(IGNORED)
    end,
  })
end

--- The edit of an answer, if it is one of the buffer as that is now.
local function edit_of(answer, buf)
  local edit = answer and answer.edits and answer.edits[1]
  local document = edit and edit.textDocument
  local is_ours = document and document.uri == vim.uri_from_bufnr(buf)
  return is_ours and document.version == Change.version(buf) and edit or nil
end

--- Errors and warnings, as the lines on which they stand.
local function diagnostics_of(buf)
  return vim.tbl_map(function(one)
    local start = { line = one.lnum, character = 0 }
    local behind = { line = (one.end_lnum or one.lnum) + 1, character = 0 }
    return { message = one.message, range = { start = start, ["end"] = behind } }
  end, vim.diagnostic.get(buf, TROUBLES))
end

local function send(client, buf, state)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = state.asked
  params.context = { triggerKind = 2 } -- automatic
  params.diagnostics = diagnostics_of(buf)
  client:request(METHOD, params, function(_, answer)
    local edit = states[buf] == state and edit_of(answer, buf)
    if edit and is_idle(buf) then
      show(client, buf, edit, answer.isHint)
    elseif edit then
      state.asked = nil -- at another moment it may be asked for again
    end
  end, buf)
end

--- Ask for the next edit in a buffer: once in each of its versions, hence not again for one that was
--- dismissed.
function M.ask(buf)
  local state, version = states[buf], Change.version(buf)
  local client = state and vim.lsp.get_client_by_id(state.client_id)
  if client and state.asked ~= version and is_idle(buf) then
    state.asked = version
    send(client, buf, state)
  end
end

local function ask_in_pause(buf)
  local version = Change.version(buf)
  vim.defer_fn(function()
    if states[buf] and Change.version(buf) == version then
      M.ask(buf)
    end
  end, PAUSE_MS)
end

--- Ask once more where a new diagnostic stands near the last edit.
local function diagnosed(buf, state)
  local known, is_new = state.troubles, false
  state.troubles = {}
  for _, one in ipairs(vim.diagnostic.get(buf, TROUBLES)) do
    state.troubles[one.message] = true
    local is_near = state.edited and math.abs(one.lnum - state.edited) <= NEAR_LINES
    is_new = is_new or is_near and not known[one.message]
  end
  if is_new then
    state.asked = nil
    ask_in_pause(buf)
  end
end

--- Follow what is edited in a buffer.
function M.attach(client, buf)
  if not M.is_offered(client) then
    return
  end
  local state = { client_id = client.id, asked = Change.version(buf), troubles = {} }
  states[buf] = state
  local group = vim.api.nvim_create_augroup(group_of(buf), {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
  end
  on({ "TextChanged", "TextChangedI", "TextChangedP" }, function()
    if state.asked ~= Change.version(buf) then -- else it is told of a second time
      state.edited = vim.api.nvim_win_get_cursor(0)[1] - 1
      ask_in_pause(buf)
    end
  end)
  on("InsertLeave", function()
    vim.schedule(function() -- until then, the mode is the one before
      M.ask(buf)
    end)
  end)
  on("DiagnosticChanged", function()
    diagnosed(buf, state)
  end)
end

--- Leave a buffer alone.
function M.detach(buf)
  states[buf] = nil
  pcall(vim.api.nvim_del_augroup_by_name, group_of(buf))
end

actions.on_accepted = function(buf)
  vim.schedule(function() -- the server hears of the accept first
    M.ask(buf)
  end)
end

return M
