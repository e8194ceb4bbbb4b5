--- What is said, and asked, where another model is chosen. Knows no editor.

local M = {}

--- What the server has against a name, with near ones.
function M.objection(told)
  local near = table.concat(told.near or {}, "`, `")
  return told.sentence .. (near ~= "" and ("; near names: `%s`"):format(near) or "")
end

--- What to ask before the host ends; nil where no other uses it, as the server says.
function M.question(use)
  if use.running == false or use.numOtherClients == 0 then
    return nil
  elseif not use.numOtherClients then
    return "Other windows or editors may use the model that runs now. It ends for all of them. Go on?"
  end
  local who = use.numOtherClients == 1 and "window or editor uses" or "windows or editors use"
  local model = use.model and use.model ~= "" and use.model or "the model that runs now"
  return ("%d other %s %s. It ends for all of them. Go on?"):format(use.numOtherClients, who, model)
end

--- How long the choice holds.
function M.duration(name)
  return ('%s until Neovim ends; `settings = { model = "%s" }` keeps it'):format(name, name)
end

return M
