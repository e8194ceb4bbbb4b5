--- The change that a buffer shows, one at most, until it is accepted or dismissed, or the buffer is
--- changed.

local Change = require("foregram.change")
local drawing = require("foregram.change_drawing")

local M = {}

local shown = {} -- by buffer: `change`, `how`, and whether it is drawn or only hinted at

M.keymaps = {} -- as the user has them

local function group_of(buf)
  return "foregram.change." .. buf
end

local function is_near(change)
  local first, last = Change.rows(change)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  return row >= first - 1 and row <= last + 1 and vim.fn.foldclosed(first + 1) == -1
end

local function draw_hint(buf)
  local state = shown[buf]
  if buf == vim.api.nvim_get_current_buf() then
    local row, text = state.how.hint(state.change, is_near(state.change), state.is_open)
    drawing.hint(buf, row or 0, text)
  end
end

local function open(buf)
  if not shown[buf].is_open then
    shown[buf].is_open = true
    drawing.draw(shown[buf].change)
  end
end

local function map(buf, key, act)
  if not key then
    return nil
  end
  local former = vim.api.nvim_buf_call(buf, function()
    return vim.fn.maparg(key, "n", false, true)
  end)
  vim.keymap.set("n", key, act, { buffer = buf, nowait = true, desc = "foregram: a change" })
  return { key = key, former = former.buffer == 1 and former or nil }
end

local function unmap(buf, mapped)
  pcall(vim.keymap.del, "n", mapped.key, { buffer = buf })
  if mapped.former then
    vim.api.nvim_buf_call(buf, function()
      vim.fn.mapset("n", false, mapped.former)
    end)
  end
end

--- Keys of normal mode, only while there is a change: `<Tab>` and `<Esc>` have other uses.
local function map_keys(buf)
  local keys = M.keymaps
  return {
    map(buf, keys.accept, function()
      M.accept(buf)
    end),
    map(buf, keys.dismiss and "<Esc>", function()
      M.dismiss(buf)
    end),
  }
end

--- The change that a buffer shows.
function M.current(buf)
  return shown[buf] and shown[buf].change
end

local function take_away(buf)
  local state = shown[buf]
  shown[buf] = nil
  if state and vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_del_augroup_by_name(group_of(buf))
    drawing.clear(buf)
    for _, mapped in pairs(state.mapped) do
      unmap(buf, mapped)
    end
  end
end

local function pass_over(buf, is_stale)
  local state = shown[buf]
  take_away(buf)
  state.how.on_passed(is_stale)
end

--- Take it away, as something else has come up.
function M.clear(buf)
  if shown[buf] then
    pass_over(buf, false)
  end
end

local function drop_stale(buf)
  local is_stale = shown[buf] and not Change.is_current(shown[buf].change)
  if is_stale then
    pass_over(buf, true)
  end
  return is_stale
end

local function follow(buf)
  local group = vim.api.nvim_create_augroup(group_of(buf), {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
  end
  on({ "TextChanged", "TextChangedI", "TextChangedP" }, function()
    drop_stale(buf)
  end)
  on({ "BufEnter", "CursorMoved", "CursorMovedI" }, function()
    draw_hint(buf)
  end)
end

--- Show a change. `how` says what stands at a line's end: `hint(change, is_near, is_open)`, a row and
--- a text; `is_hinted`: the change itself is shown by the first accept; `jumps`: it is applied where
--- the cursor is near; and what to do `on_accepted`, `on_dismissed` and, where it is neither,
--- `on_passed(is_stale)`: whether the buffer has changed.
function M.show(change, how)
  local buf = change.buf
  M.clear(buf)
  shown[buf] = { change = change, how = how, mapped = map_keys(buf), is_open = false }
  follow(buf)
  if not how.is_hinted then
    open(buf)
  end
  draw_hint(buf)
end

local function go_to(change)
  local row, column = Change.place(change)
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_cursor(0, { row + 1, column })
  vim.cmd("normal! zv")
end

local function apply(state)
  local row, column = Change.apply(state.change)
  if state.how.jumps then
    local last = vim.api.nvim_buf_line_count(state.change.buf)
    vim.api.nvim_win_set_cursor(0, { math.min(row + 1, last), column })
  end
  state.how.on_accepted()
end

--- Go to the change where it is elsewhere, else write it, as one undo step of normal mode.
function M.accept(buf)
  local state = shown[buf]
  if not state or drop_stale(buf) then
    return
  elseif not vim.bo[buf].modifiable then
    require("foregram.report").warn("the buffer cannot be changed")
  elseif state.how.jumps and not (state.is_open and is_near(state.change)) then
    go_to(state.change)
    open(buf)
    draw_hint(buf)
  else
    take_away(buf)
    apply(state)
  end
end

--- Take it away because the user does not want it.
function M.dismiss(buf)
  local state = shown[buf]
  if state then
    take_away(buf)
    state.how.on_dismissed()
  end
end

return M
