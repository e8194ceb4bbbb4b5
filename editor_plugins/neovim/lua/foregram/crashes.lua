--- Counts how often the server ended by itself. Knows no editor.

local M = {}

M.LIMIT = 3
M.WINDOW_S = 180

--- Counts of one server.
function M.new()
  return { times = {} }
end

--- Note an end at a time in seconds; whether it was one too many.
function M.add(crashes, now_s)
  local recent = {}
  for _, time_s in ipairs(crashes.times) do
    if now_s - time_s < M.WINDOW_S then
      recent[#recent + 1] = time_s
    end
  end
  recent[#recent + 1] = now_s
  crashes.times = recent
  return #recent >= M.LIMIT
end

--- The last line of what a server printed that says something.
function M.last_words(text)
  local last = ""
  for line in text:gmatch("[^\r\n]+") do
    if line:find("%S") then
      last = line:match("^%s*(.-)%s*$")
    end
  end
  return last
end

return M
