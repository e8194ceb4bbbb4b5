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

local function add_remedy(lines, answer, place)
  if is_there(answer.remedy) then
    lines[#lines + 1] = "  " .. remedies.line(answer.remedy, place)
  end
end

local function add_answer(lines, answer, place)
  local at = answer.line and (", line %d"):format(answer.line) or ""
  lines[#lines + 1] = ("%s%s: %s"):format(M.age(answer.age_s or 0), at, answer.sentence)
  add_remedy(lines, answer, place)
end

local function add_now(lines, now, place)
  if is_there(now) then
    lines[1] = ("Nothing is shown in %s now: %s."):format(place.file, now.sentence)
    add_remedy(lines, now, place)
  else
    lines[1] = ("Nothing prevents suggestions in %s."):format(place.file)
  end
end

local function add_answers(lines, title, answers, place)
  lines[#lines + 1] = #answers > 0 and title or nil
  for _, answer in ipairs(answers) do
    add_answer(lines, answer, place)
  end
end

local function by_line(answers, line)
  local here, elsewhere = {}, {}
  for _, answer in ipairs(answers) do
    local group = answer.line == line and here or elsewhere
    group[#group + 1] = answer
  end
  return here, elsewhere
end

--- What prevents a suggestion in `place.file` now, its last empty answers, those of
--- `place.line` before the others, and its last prompt.
function M.lines(told, place)
  if type(told.answers) ~= "table" then
    return { ("The server did not say what it knows of %s."):format(place.file) }
  end
  local lines = {}
  add_now(lines, told.now, place)
  local here, elsewhere = by_line(told.answers, place.line)
  lines[#lines + 1] = ""
  lines[#lines + 1] = #told.answers == 0 and "No answer for this file was empty." or nil
  add_answers(lines, "The last empty answers in this line, the newest first:", here, place)
  add_answers(lines, "Empty answers elsewhere in this file:", elsewhere, place)
  if type(told.prompt) == "string" then
    lines[#lines + 1] = ("The last prompt for this file: %s."):format(told.prompt)
  end
  return lines
end

return M
