--- Text alone: words, lines, lengths. Knows no editor, so plain Lua tests it.

local M = {}

--- The first word of a text's characters, with the white space before it. A word ends where
--- `class_of` a character is another one; that of white space is 0.
function M.next_word(characters, class_of)
  local word, class = "", 0
  for _, character in ipairs(characters) do
    local next_class = class_of(character)
    if class ~= 0 and next_class ~= class then
      break
    end
    word, class = word .. character, next_class
  end
  return word
end

--- The rest of the text's first line; where that is empty, the next line with what leads to it.
function M.next_line(text)
  return text:match("^[\n]*[^\n]*")
end

--- How many UTF-16 units a text has: LSP counts in them.
function M.utf16_length(text)
  local units = 0
  for index = 1, #text do
    local byte = text:byte(index)
    if byte < 0x80 or byte >= 0xC0 then
      units = units + (byte >= 0xF0 and 2 or 1)
    end
  end
  return units
end

--- The lines of a text.
function M.lines(text)
  local lines = {}
  for line in (text .. "\n"):gmatch("(.-)\n") do
    lines[#lines + 1] = line
  end
  return lines
end

local function is_character(text, index)
  local byte = text:byte(index)
  return not byte or byte < 0x80 or byte >= 0xC0
end

--- Where two lines differ: how many bytes they begin with alike, and what stands in each from there
--- to where they end alike. No character is cut.
function M.difference(old, new)
  local first, last, shorter = 0, 0, math.min(#old, #new)
  while first < shorter and old:byte(first + 1) == new:byte(first + 1) do
    first = first + 1
  end
  while not (is_character(old, first + 1) and is_character(new, first + 1)) do
    first = first - 1
  end
  while last < shorter - first and old:byte(#old - last) == new:byte(#new - last) do
    last = last + 1
  end
  while last > 0 and not is_character(old, #old - last + 1) do
    last = last - 1
  end
  return first, old:sub(first + 1, #old - last), new:sub(first + 1, #new - last)
end

--- The text with spaces for tabs, as it looks from a column on: virtual text has no tab stops.
function M.expand_tabs(text, tabstop, column)
  local shown = ""
  for piece, tab in text:gmatch("([^\t]*)(\t?)") do
    shown = shown .. piece
    if tab ~= "" then
      -- The width of letters beyond ASCII is not known here; code stands behind indents, not them.
      shown = shown .. (" "):rep(tabstop - (column + #shown) % tabstop)
    end
  end
  return shown
end

--- A line of ghost text cut where the text that it replaces stays on the screen.
function M.around(line, covered)
  local at, from = nil, 1
  while covered ~= "" do
    local found = line:find(covered, from, true)
    if not found then
      break
    end
    at, from = found, found + 1
  end
  if not at then
    return line, ""
  end
  return line:sub(1, at - 1), line:sub(at + #covered)
end

local function ends_with(text, ending)
  return #text >= #ending and text:sub(#text - #ending + 1) == ending
end

--- How many bytes after the cursor an item replaces by now, or nil where it no longer fits.
local function covered_now(item, rest, tail)
  if tail == item.tail then
    return #item.covered
  elseif ends_with(tail, item.tail) then
    -- What an auto-pair plugin closed: the item must close it too.
    local closed = tail:sub(1, #tail - #item.tail)
    return rest:find(closed, 1, true) and #closed + #item.covered or nil
  elseif ends_with(item.tail, tail) then
    local overtyped = #item.tail - #tail
    return overtyped <= #item.covered and #item.covered - overtyped or nil
  end
end

--- What is left of an item on its line as that is now: the text, and how many bytes after the
--- cursor it replaces. Nothing, where what was typed is not its beginning.
---
--- An item has `text`, `start` (byte column), `before` (the line up to it), and, as they were when
--- it was asked for, `tail` (the line after the cursor) and `covered` (what of it is replaced).
function M.remaining(item, line, column)
  local typed = line:sub(item.start + 1, column)
  if column < item.start or line:sub(1, item.start) ~= item.before then
    return nil
  elseif item.text:sub(1, #typed) ~= typed or #typed == #item.text then
    return nil
  end
  local rest = item.text:sub(#typed + 1)
  local covered = covered_now(item, rest, line:sub(column + 1))
  if covered then
    return rest, covered
  end
end

--- Whether a version like 0.1.0 is older than another.
function M.is_older(version, other)
  local ours, theirs = version:gmatch("%d+"), other:gmatch("%d+")
  for _ = 1, 3 do
    local left, right = tonumber(ours() or 0), tonumber(theirs() or 0)
    if left ~= right then
      return left < right
    end
  end
  return false
end

return M
