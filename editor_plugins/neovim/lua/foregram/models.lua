--- Another model for the host on this machine, which all who share it then have.

local client = require("foregram.client")
local model_choice = require("foregram.model_choice")
local program = require("foregram.program")
local questions = require("foregram.questions")
local report = require("foregram.report")
local server_settings = require("foregram.server_settings")

local NAMES_MS = 500 -- the editor waits for the names on Tab

local M = {}

--- The names to choose from; none without a server that answers at once.
function M.names()
  local running = client.get()
  local params = { command = "foregram.models" }
  local told = running and running:request_sync("workspace/executeCommand", params, NAMES_MS) or {}
  return vim.tbl_map(function(one)
    return one.name
  end, type(told.result) == "table" and told.result or {})
end

local function switch(name, use)
  local question = model_choice.question(use)
  if question and vim.fn.confirm(question, "&Yes\n&No", 2) ~= 1 then
    return
  end
  server_settings.choose_model(name)
  program.run({ "stop", "--force" }, function()
    client.restart()
    report.say(model_choice.duration(name))
  end)
end

--- Refuse a name that cannot be used, ask before a host ends that others use, and switch.
function M.choose(name)
  local host_url = server_settings.host_url()
  if host_url then
    report.warn(("The model is set on the remote host %s"):format(host_url))
    return
  end
  local is_asked = questions.execute("foregram.checkModel", { name }, function(told)
    if told.ok == false then
      report.warn(model_choice.objection(told))
      return
    end
    questions.execute("foregram.hostUse", nil, function(use)
      switch(name, use)
    end)
  end)
  if not is_asked then
    switch(name, {})
  end
end

return M
