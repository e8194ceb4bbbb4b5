--- Suggestions from your own model: `require("foregram").setup{}`, and what keys may call.

local M = {}

local is_set_up = false

local function define_colours()
  require("foregram.drawing").define_colour()
  require("foregram.change_drawing").define_colours()
end

--- The plugin's client takes the place of the one that `vim.lsp.enable("foregram")` starts.
local function replace_enabled()
  local client = require("foregram.client")
  vim.lsp.config(client.NAME, {
    cmd = client.options.cmd,
    root_dir = function() end, -- starts none: it would have to call its second argument
  })
  for _, other in ipairs(vim.lsp.get_clients({ name = client.NAME, _uninitialized = true })) do
    if other ~= client.started() then
      other:stop(not other.initialized)
    end
  end
end

local function watch_buffers()
  local client = require("foregram.client")
  local feedback = require("foregram.feedback")
  local group = vim.api.nvim_create_augroup("foregram", {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, callback = callback })
  end
  local events = { "BufEnter", "BufFilePost", "BufReadPost", "BufWritePost", "FileType" }
  on(vim.list_extend(events, { "InsertEnter" }), function(event)
    -- After all that an event sets off: a modeline may still make the buffer read-only.
    vim.schedule(function()
      local buf = event.buf
      if vim.api.nvim_buf_is_valid(buf) and not client.attached_buffers[buf] then
        client.attach(buf)
      end
    end)
  end)
  on("BufEnter", function(event)
    local running = client.attached_buffers[event.buf] and client.get()
    if running then
      feedback.focused(running, event.buf)
    end
  end)
  on({ "BufDelete", "BufWipeout" }, function(event)
    client.attached_buffers[event.buf] = nil
    client.forget_edits(event.buf)
  end)
  on("LspProgress", function(event)
    require("foregram.asked_edit").progress(event.data.params)
  end)
  on("VimLeavePre", client.leave)
  on("VimLeave", require("foregram.process").clean_up)
  on("ColorScheme", define_colours)
end

--- Start foregram. An option that is wrong is named in a sentence, and the others hold.
function M.setup(options)
  local report = require("foregram.report")
  if vim.fn.has("nvim-0.11") == 0 then
    report.warn("the plugin needs Neovim 0.11 or newer")
    return
  end
  local config, problems = require("foregram.config").read(options)
  local client, actions = require("foregram.client"), require("foregram.actions")
  client.configure(config)
  replace_enabled()
  problems[#problems + 1] = actions.choose(config.ghost_text)
  define_colours()
  require("foregram.keys").map_all(config.keymaps, require("foregram.questions").trigger)
  watch_buffers()
  if vim.fn.exists(":Foregram") == 0 then
    vim.cmd.runtime("plugin/foregram.lua") -- the folder came on the path after Neovim's start
  end
  is_set_up = true
  for _, problem in ipairs(problems) do
    report.warn(problem)
  end
  require("foregram.state").start()
  vim.schedule(client.attach_all)
end

--- Whether setup was called.
function M.is_set_up()
  return is_set_up
end

local function act(name)
  return function()
    return is_set_up and require("foregram.keys").act(name)
  end
end

--- Each does something with the ghost text, and returns whether there was any. Without it, `accept`
--- and `dismiss` do so with a change that is shown.
M.accept = act("accept")
M.accept_word = act("accept_word")
M.accept_line = act("accept_line")
M.next = act("next")
M.previous = act("previous")
M.dismiss = act("dismiss")

--- Ask for suggestions at the cursor, several of them; false where nothing can be asked.
function M.trigger()
  return is_set_up and require("foregram.questions").trigger()
end

--- Turn suggestions on or off, for a language by its LSP name or at all.
function M.enable(is_on, language)
  local settings, state = require("foregram.server_settings"), require("foregram.state")
  settings.enable(is_on, language)
  state.snoozed_until = language and state.snoozed_until
  if is_set_up then
    if is_on then
      require("foregram.client").start(true)
    end
    require("foregram.client").send_settings()
    require("foregram.actions").backend().dismiss(vim.api.nvim_get_current_buf())
  end
end

--- Switch the other way; whether suggestions are on now.
function M.toggle(language)
  local is_on = not require("foregram.server_settings").is_enabled(language)
  M.enable(is_on, language)
  return is_on
end

--- Turn suggestions off for some minutes; a sentence that says so.
function M.snooze(minutes)
  local state = require("foregram.state")
  local until_s = os.time() + 60 * minutes
  if not state.snoozed_until and not require("foregram.server_settings").is_enabled() then
    return state.seen().message
  end
  M.enable(false)
  state.snoozed_until = until_s
  vim.defer_fn(function()
    if state.snoozed_until == until_s then -- not turned on, off or snoozed since
      M.enable(true)
    end
  end, 60000 * minutes)
  return state.seen().message
end

--- The text for a statusline; the event `User ForegramStatus` says when it changed.
function M.status()
  return require("foregram.state").text()
end

--- The state behind it: `kind`, `message`, `busy`, and what else the server said.
function M.state()
  return vim.deepcopy(require("foregram.state").seen())
end

local function server(name)
  return function()
    require("foregram.client")[name]()
  end
end

--- Start the server again, also after it was given up; start it where it does not run; end it.
M.restart = server("restart")
M.start = server("start")
M.stop = server("stop")

return M
