--- `:Foregram` and its subcommands.

local report = require("foregram.report")

local M = {}

local function foregram()
  return require("foregram")
end

local function client()
  return require("foregram.client")
end

local function describe(language)
  return language and ("completion in " .. language) or "completion"
end

local function switch(is_on)
  return function(language)
    foregram().enable(is_on, language)
    report.say(describe(language) .. " is " .. (is_on and "on" or "off"))
  end
end

local function toggle(language)
  report.say(describe(language) .. " is " .. (foregram().toggle(language) and "on" or "off"))
end

local function show_status()
  local now = foregram().state()
  local percent = now.percent and (" (%d %%)"):format(now.percent) or ""
  local text = now.message ~= "" and now.message or "waiting for the completion host"
  report.say(("%s: %s%s%s"):format(now.kind, text, percent, now.busy and ", working" or ""))
end

local function reason_lines(answers)
  local lines = {}
  for index = #answers, 1, -1 do
    local answer = answers[index]
    local time = os.date("%H:%M:%S", math.floor(answer.time_s or answer.timeS or 0))
    lines[#lines + 1] = ("%s  %s  %s (%s)"):format(time, answer.file, answer.sentence, answer.reason)
  end
  return lines
end

local function why()
  local buf = vim.api.nvim_get_current_buf()
  local is_on = require("foregram.server_settings").is_enabled()
  local reason = client().reason_not(buf)
    or not is_on and "completion is switched off: `:Foregram enable`"
  if reason then
    report.show("why", { "In this buffer: " .. reason .. "." })
    return
  end
  local is_asked = client().execute("foregram.why", function(answers)
    local lines = reason_lines(answers)
    local title = #lines > 0 and "The last empty answers, the newest first:" or "No answer was empty."
    table.insert(lines, 1, title)
    local now = foregram().state()
    if now.kind == "Error" then
      table.insert(lines, 1, "The state: " .. now.message .. ".")
    end
    report.show("why", lines)
  end)
  if not is_asked then
    report.show("why", { "The server does not run: " .. foregram().state().message .. "." })
  end
end

--- The program that `cmd` starts, with another of its commands.
local function command_line(...)
  local cmd = {}
  for _, word in ipairs(client().options().cmd) do
    if word == "lsp" then
      break
    end
    cmd[#cmd + 1] = word
  end
  return vim.list_extend(cmd, { ... })
end

local function show_output(title, cmd, more)
  local env = require("foregram.server_settings").environment()
  local ok, problem = pcall(vim.system, cmd, { text = true, env = env }, function(done)
    vim.schedule(function()
      local lines = vim.split(vim.trim((done.stdout or "") .. (done.stderr or "")), "\n")
      report.show(title, vim.list_extend(lines, more or {}))
    end)
  end)
  if not ok then
    report.warn(("`%s` cannot be run: %s"):format(table.concat(cmd, " "), problem))
  end
end

local function logs()
  local path = require("foregram.process").log_path()
  local printed = vim.uv.fs_stat(path) and vim.fn.readfile(path) or {}
  local more = { "", "The language server printed:" }
  show_output("logs", command_line("logs"), #printed > 0 and vim.list_extend(more, printed) or {})
end

local function doctor()
  report.say("examining; this takes a moment")
  show_output("doctor", command_line("doctor"))
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
  enable = switch(true),
  logs = logs,
  next = act("next"),
  previous = act("previous"),
  restart = act("restart"),
  status = show_status,
  stop = act("stop"),
  toggle = toggle,
  trigger = act("trigger"),
  why = why,
}

local takes_language = { disable = true, enable = true, toggle = true }

local function names()
  local sorted = vim.tbl_keys(M.subcommands)
  table.sort(sorted)
  return sorted
end

--- Run `:Foregram` with its arguments.
function M.run(arguments)
  local name, language = arguments[1] or "status", arguments[2]
  local subcommand = M.subcommands[name]
  if not foregram().is_set_up() then
    report.warn("call `require('foregram').setup{}` first")
  elseif not subcommand then
    local text = "there is no `:Foregram %s`; there are: %s"
    report.warn(text:format(name, table.concat(names(), ", ")))
  elseif language and not takes_language[name] then
    report.warn(("`:Foregram %s` takes no argument"):format(name))
  else
    subcommand(language)
  end
end

--- What may follow on the command line.
function M.complete(lead, line)
  local words = vim.split(vim.trim(line), "%s+")
  local is_second = #words > 2 or (#words == 2 and lead == "")
  local found = names()
  if is_second then
    local filetype = vim.bo.filetype
    local language = require("foregram.server_settings").language_of(filetype)
    found = takes_language[words[2]] and language ~= "" and { language } or {}
  end
  return vim.tbl_filter(function(one)
    return vim.startswith(one, lead)
  end, found)
end

return M
