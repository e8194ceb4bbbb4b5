--- The language server: one client for all buffers, started when the first one needs it.

local actions = require("foregram.actions")
local asked_edit = require("foregram.asked_edit")
local buffers = require("foregram.buffers")
local feedback = require("foregram.feedback")
local next_edit = require("foregram.next_edit")
local own = require("foregram.own")
local process = require("foregram.process")
local proposal = require("foregram.proposal")
local remedies = require("foregram.remedies")
local report = require("foregram.report")
local request = require("foregram.request")
local server_check = require("foregram.server_check")
local server_settings = require("foregram.server_settings")
local state = require("foregram.state")

local M = {}

M.VERSION = "0.1.0" -- of the plugin, and of the oldest server that it takes
M.NAME = "foregram"

local RESTART_MS = 300
local STOPPED = "the server is stopped: `:Foregram start` starts it"
local STOP_MS = 3000 -- after that the server has no more time to end by itself

local started_id -- of the newest client
local stopping = {} -- by client: it was asked to end
local given_up -- why the server is not started any more
local wants_restart = false

own.may_ask = function()
  return server_settings.is_enabled()
end

--- The client from its start to its end, also while the server owes the answer to `initialize`.
function M.started()
  return started_id and vim.lsp.get_client_by_id(started_id)
end

--- The client, once the server runs.
function M.get()
  local client = M.started()
  return client and client.initialized and client or nil
end

--- Why nothing is completed in a buffer, as far as the plugin knows; the server knows the rest.
function M.reason_not(buf)
  return given_up or buffers.reason_not(buf, M.options, M.get())
end

local function give_up(sentence)
  given_up = sentence
  state.set("Error", sentence)
  report.say(sentence, vim.log.levels.ERROR)
end

local function stop(client)
  stopping[client.id] = true
  client:stop()
  vim.defer_fn(function()
    if vim.lsp.get_client_by_id(client.id) then
      client.rpc.terminate()
    end
  end, STOP_MS)
end

local function initialized(client, result)
  local sentence = server_check.complaint(result, M.options.cmd, M.VERSION)
  if sentence then
    give_up(sentence)
    stop(client)
  end
end

local function start_again(complaint)
  wants_restart = false
  local sentence = "the server is being started again"
  if complaint then
    state.set("Error", sentence .. ": " .. complaint)
  else
    state.start(sentence)
  end
  vim.defer_fn(M.attach_all, RESTART_MS)
end

local function exited(code, signal, client_id)
  local was_asked = stopping[client_id]
  stopping[client_id] = nil
  vim.schedule(function()
    if vim.v.exiting ~= vim.NIL then
      return
    end
    started_id = started_id ~= client_id and started_id or nil
    M.detach_all()
    if given_up then
      return -- while it ended by itself, it was stopped
    end
    local complaint = not was_asked and process.silence(client_id) or nil
    local how = complaint or process.how_it_ended(code, signal)
    local sentence = not was_asked and process.crashed(how)
    if sentence then
      give_up(sentence)
    elseif not was_asked or wants_restart then
      start_again(complaint)
    else
      state.reset()
    end
  end)
end

--- Whether the cursor stands where the server completes.
local function is_typing(buf)
  return M.attached_buffers[buf] and vim.api.nvim_get_mode().mode:find("^i") and M.get() ~= nil
end

--- What was asked for in vain is asked for again, where the cursor stands now.
local function ask_again()
  local buf = vim.api.nvim_get_current_buf()
  if is_typing(buf) and own.may_ask() and not actions.has_ghost_text() then
    actions.ask(M.get(), buf, request.AUTOMATIC)
  end
end

--- A longer text takes the place of the one that is on the screen, or awaited.
local function show_more(params)
  local buf = vim.api.nvim_get_current_buf()
  local is_same = vim.lsp.util.buf_versions[buf] == params.version
  if is_same and vim.uri_from_bufnr(buf) == params.uri and is_typing(buf) and actions.may_grow(buf) then
    actions.ask(M.get(), buf, request.AUTOMATIC)
  end
end

local function attached(client, buf)
  if not given_up then
    M.attached_buffers[buf] = true
    buffers.enter_folder(client, vim.fs.root(buf, M.options.root_markers))
    actions.backend().attach(buf, client)
    next_edit.attach(client, buf)
    if buf == vim.api.nvim_get_current_buf() then
      feedback.focused(client, buf) -- it was entered before it was attached
    end
    vim.schedule(ask_again) -- what was typed before the server was there
  end
end

M.attached_buffers = {}

--- Neither show an edit in a buffer nor wait for one.
function M.forget_edits(buf)
  next_edit.detach(buf)
  asked_edit.cancel(buf)
  proposal.clear(buf)
end

--- Take the ghost text, and what draws it, from all buffers, and edits too.
function M.detach_all()
  for buf in pairs(M.attached_buffers) do
    actions.backend().detach(buf)
    M.forget_edits(buf)
  end
  M.attached_buffers = {}
end

local function client_config(root)
  local sent = server_settings.for_server()
  local ours = { textDocument = { inlineCompletion = { dynamicRegistration = false } } }
  local all = vim.tbl_deep_extend("force", vim.lsp.protocol.make_client_capabilities(), ours)
  return {
    name = M.NAME,
    cmd = process.start(M.options.cmd),
    root_dir = root,
    capabilities = all,
    settings = { foregram = sent },
    init_options = {
      foregram = sent,
      editorInfo = { name = "Neovim", version = tostring(vim.version()) },
      editorPluginInfo = { name = "foregram", version = M.VERSION },
      asksAgain = true,
    },
    handlers = {
      didChangeStatus = function(_, status)
        local former = state.now.message
        state.take(status)
        if state.now.state == "failed" and state.now.message ~= former then
          local sentence = ("%s; %s"):format(state.now.message, remedies.after_failure(state.now.remedy))
          report.say(sentence, vim.log.levels.ERROR)
        end
      end,
      ["foregram/askAgain"] = ask_again,
      ["foregram/moreText"] = function(_, params)
        vim.schedule(function() -- after the shorter text, which may be on its way to the screen
          show_more(params)
        end)
      end,
    },
    on_init = initialized,
    on_attach = attached,
    on_exit = exited,
  }
end

--- Have the server for a buffer.
function M.attach(buf)
  if not vim.api.nvim_buf_is_loaded(buf) or M.reason_not(buf) then
    return
  end
  local missing = server_check.missing(M.options.cmd)
  if missing then
    give_up(missing)
    return
  end
  local id = vim.lsp.start(client_config(vim.fs.root(buf, M.options.root_markers)), {
    bufnr = buf,
    silent = true,
    reuse_client = function(client)
      return client.id == started_id and not client:is_stopped()
    end,
  })
  if id and id ~= started_id then
    started_id = id
    state.start()
    process.limit_answer(id)
  end
end

--- Have the server for all buffers that are loaded.
function M.attach_all()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.bo[buf].buflisted then
      M.attach(buf)
    end
  end
  if not started_id and not given_up then
    state.reset() -- there is nothing to complete in
  end
end

--- End the server; it comes back by `start` and `restart`.
function M.stop()
  given_up = STOPPED
  wants_restart = false
  local client = M.started()
  if client then
    stop(client)
  end
  state.set("Inactive", given_up)
end

--- Start the server where it does not run; `only_stopped`: where it was stopped, not given up.
function M.start(only_stopped)
  if given_up == STOPPED or not only_stopped and (given_up or not M.started()) then
    M.restart()
  end
end

--- End the server, if it runs, and start it.
function M.restart()
  local client = M.started()
  given_up = nil
  process.forget_crashes()
  if client then
    wants_restart = true
    stop(client)
  else
    M.attach_all()
  end
end

--- Neovim ends: some of its versions forget a server that has not answered `initialize`.
function M.leave()
  local client = M.started()
  if client and not client.initialized then
    client:stop(true)
  end
end

--- The settings changed: the server hears of them, and is answered from them when it asks.
function M.send_settings()
  local client = M.get()
  if client then
    client.settings = { foregram = server_settings.for_server() }
    client:notify("workspace/didChangeConfiguration", { settings = client.settings })
  end
end

--- Take the plugin's options over.
function M.configure(options)
  M.options = options
  server_settings.set(options.settings)
end

return M
