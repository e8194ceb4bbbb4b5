--- The server's answer to "why is nothing shown here", as lines. Knows no editor.

local remedies = require("foregram.remedies")

local M = {}

--- How long ago, in the largest unit that fits.
function M.age(seconds)
  if seconds < 60 then
    return ("%d s ago"):format(seconds)
  elseif seconds < 3600 then
    return ("%d min ago"):format(seconds / 60)
  end
  return ("%d h ago"):format(seconds / 3600)
end

local function is_there(value)
  return type(value) == "table" and next(value) ~= nil
end

--- What prevents a suggestion in `place.file` now, its last empty answers, those of
--- `place.line` before the others, and its last prompt.
function M.lines(told, place)
  if type(told.answers) ~= "table" then
    return { ("The server did not say what it knows of %s."):format(place.file) }
  end
  local lines = {}
  local function add(line, remedy)
    lines[#lines + 1] = line
    if is_there(remedy) then
      lines[#lines + 1] = "  " .. remedies.line(remedy, place)
    end
  end
  local function add_answers(title, is_here)
    for _, answer in ipairs(told.answers) do
      if (answer.line == place.line) == is_here then
        add(title)
        title = nil -- once
        local at = answer.line and (", line %d"):format(answer.line) or ""
        add(("%s%s: %s"):format(M.age(answer.age_s or 0), at, answer.sentence), answer.remedy)
      end
    end
  end
  if is_there(told.now) then
    add(("Nothing is shown in %s now: %s."):format(place.file, told.now.sentence), told.now.remedy)
  else
    add(("Nothing prevents suggestions in %s."):format(place.file))
  end
  add("")
  if #told.answers == 0 then
    add("No answer for this file was empty.")
  end
  add_answers("The last empty answers in this line, the newest first:", true)
  add_answers("Empty answers elsewhere in this file:", false)
  if type(told.prompt) == "string" then
    add(("The last prompt for this file: %s."):format(told.prompt))
  end
  return lines
end

return M
