--- `:Foregram` and its subcommands.

local report = require("foregram.report")

local M = {}

local SNOOZE_MINUTES = 5

local function foregram()
  return require("foregram")
end

local function client()
  return require("foregram.client")
end

local function describe(language)
  return language and ("Suggestions in " .. language) or "Suggestions"
end

local function switch(is_on)
  return function(language)
    foregram().enable(is_on, language)
    report.say(describe(language) .. " are " .. (is_on and "on" or "off"))
  end
end

local function snooze(minutes)
  local number = tonumber(minutes or SNOOZE_MINUTES)
  if not number or number <= 0 then
    report.warn("say for how many minutes: `:Foregram snooze 5`")
  else
    report.say(foregram().snooze(number))
  end
end

local function stop()
  foregram().stop()
  report.say(foregram().state().message)
end

local function toggle(language)
  report.say(describe(language) .. " are " .. (foregram().toggle(language) and "on" or "off"))
end

--- What reports of the window that the user looks at need to know.
local function place_of(win)
  local buf = vim.api.nvim_win_get_buf(win)
  local name = vim.api.nvim_buf_get_name(buf)
  local settings = require("foregram.server_settings")
  return {
    file = name ~= "" and vim.fs.basename(name) or "this buffer",
    language = vim.bo[buf].filetype,
    line = vim.api.nvim_win_get_cursor(win)[1],
    model = foregram().state().configured_model and (settings.model() or "NAME"),
    trigger = client().options.keymaps.trigger,
  }
end

local function show_status()
  local now = foregram().state()
  local lines = { ("%s: %s"):format(now.kind, now.message) }
  if now.remedy then
    local place = place_of(report.subject())
    lines[#lines + 1] = require("foregram.remedies").line(now.remedy, place)
  end
  report.show("status", lines)
end

local function why_no_server()
  local now = foregram().state()
  local is_starting = now.state == "starting"
  return is_starting and "The server is starting." or "The server does not run: " .. now.message .. "."
end

local function why()
  local win = report.subject()
  local is_on = require("foregram.server_settings").is_enabled()
  local reason = client().reason_not(vim.api.nvim_win_get_buf(win))
    or not is_on and "Suggestions are off: `:Foregram enable`"
  if reason then
    report.show("why", { "In this buffer: " .. reason .. "." })
    return
  end
  local place = place_of(win)
  local is_asked = require("foregram.questions").why(win, function(told)
    local lines = require("foregram.explanation").lines(told, place)
    local now = foregram().state()
    if now.kind == "Error" or now.kind == "Warning" then
      table.insert(lines, 1, "The state: " .. now.message .. ".")
    end
    report.show("why", lines)
  end)
  if not is_asked then
    report.show("why", { why_no_server() })
  end
end

local function show_output(title, more, option)
  return require("foregram.program").run({ title, option }, function(printed)
    report.show(title, vim.list_extend(vim.split(printed, "\n"), more or {}))
  end)
end

local function logs()
  local printed = require("foregram.process").printed()
  local more = { "", "The language server printed:" }
  show_output("logs", #printed > 0 and vim.list_extend(more, printed) or {})
end

local function doctor()
  if show_output("doctor") then
    report.show("doctor", { "Examining; this takes a moment." })
  end
end

local function saved(argument)
  if argument and argument ~= "reset" then
    report.warn("say `:Foregram saved`, or `:Foregram saved reset`")
  else
    show_output("saved", nil, argument and "--reset")
  end
end

local function choose_model(name)
  if name then
    require("foregram.models").choose(name)
  else
    report.warn("name a model: an alias as 1.5b, a hub id, a folder or a .gguf file")
  end
end

local function edit(range, instruction)
  local buf, running = vim.api.nvim_get_current_buf(), client().get()
  local reason = client().reason_not(buf)
  local Change, asked_edit = require("foregram.change"), require("foregram.asked_edit")
  local version = Change.version(buf)
  local function ask(words)
    if not words or vim.trim(words) == "" then
      return
    elseif client().get() ~= running then
      report.warn(asked_edit.ENDED)
    elseif Change.version(buf) ~= version then
      report.warn(Change.CHANGED) -- the lines may be others by now
    else
      asked_edit.ask(running, buf, range.first, range.last, vim.trim(words))
    end
  end
  if reason or not running then
    report.warn(reason or why_no_server())
  elseif vim.trim(instruction) ~= "" then
    ask(instruction)
  else
    vim.ui.input({ prompt = "Edit: " }, ask)
  end
end

local function act(name)
  return function()
    foregram()[name]()
  end
end

--- Each subcommand, by name.
M.subcommands = {
  accept = act("accept"),
  accept_line = act("accept_line"),
  accept_word = act("accept_word"),
  disable = switch(false),
  dismiss = act("dismiss"),
  doctor = doctor,
  edit = edit,
  enable = switch(true),
  logs = logs,
  model = choose_model,
  next = act("next"),
  previous = act("previous"),
  restart = act("restart"),
  saved = saved,
  snooze = snooze,
  start = act("start"),
  status = show_status,
  stop = stop,
  toggle = toggle,
  trigger = act("trigger"),
  why = why,
}

local takes_language = { disable = true, enable = true, toggle = true }
local takes_argument = vim.tbl_extend("error", { model = true, saved = true, snooze = true }, takes_language)

local function names()
  local sorted = vim.tbl_keys(M.subcommands)
  table.sort(sorted)
  return sorted
end

--- Run `:Foregram` with its arguments. `range` has the `first` and the `last` line, and whether it
--- `is_given`; `text` is all that was typed.
function M.run(arguments, range, text)
  local name, argument = arguments[1] or "status", arguments[2]
  local subcommand = M.subcommands[name]
  if not foregram().is_set_up() then
    report.warn("call `require('foregram').setup{}` first")
  elseif not subcommand then
    local sentence = "there is no `:Foregram %s`; there are: %s"
    report.warn(sentence:format(name, table.concat(names(), ", ")))
  elseif name == "edit" then
    edit(range, text:sub(#name + 1))
  elseif range.is_given then
    report.warn(("`:Foregram %s` takes no range"):format(name))
  elseif argument and not takes_argument[name] then
    report.warn(("`:Foregram %s` takes no argument"):format(name))
  else
    subcommand(argument)
  end
end

local function arguments_of(name)
  if name == "model" then
    return require("foregram.models").names()
  elseif name == "saved" then
    return { "reset" }
  end
  local language = vim.bo.filetype
  return takes_language[name] and language ~= "" and { language } or {}
end

--- What may follow on the command line.
function M.complete(lead, line)
  local words = vim.split(vim.trim(line), "%s+")
  local is_second = #words > 2 or (#words == 2 and lead == "")
  return vim.tbl_filter(function(one)
    return vim.startswith(one, lead)
  end, is_second and arguments_of(words[2]) or names())
end

return M
