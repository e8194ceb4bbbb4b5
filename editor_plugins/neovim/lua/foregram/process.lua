--- The server as a process: how it is started, what it printed, how often it ended by itself, and
--- that it answers `initialize`, for which Neovim would wait for ever.

local crashes = require("foregram.crashes")

local M = {}

M.ANSWER_MS = 30000 -- a cold start on a busy machine takes some seconds

local counts = crashes.new()
local silent = {} -- by client: it was ended because it did not answer

--- What the server prints on stderr goes here; the newest server's alone.
local function log_path()
  return vim.fs.joinpath(vim.fn.stdpath("state"), ("foregram-%d.log"):format(vim.uv.os_getpid()))
end

--- The lines that are there.
function M.printed()
  local path = log_path()
  return vim.uv.fs_stat(path) and vim.fn.readfile(path) or {}
end

--- Start it, and not in a repository, whose files Python might take for its own. The shell is replaced
--- by the server, whose stderr Neovim would only log for itself.
function M.start(cmd)
  return function(dispatchers, config)
    vim.fn.mkdir(vim.fn.stdpath("state"), "p")
    local started = vim.list_extend({ vim.fn.exepath(cmd[1]) }, cmd, 2)
    if vim.fn.executable("sh") == 1 then
      local script = ('exec "$@" 2>%s'):format(vim.fn.shellescape(log_path()))
      started = vim.list_extend({ "sh", "-c", script, "foregram" }, started)
    end
    local cwd = config.cmd_cwd or vim.uv.os_homedir()
    return vim.lsp.rpc.start(started, dispatchers, { cwd = cwd, env = config.cmd_env })
  end
end

--- End the server, unless it answers in time.
function M.limit_answer(client_id)
  vim.defer_fn(function()
    local client = vim.lsp.get_client_by_id(client_id)
    if client and not client.initialized and not client:is_stopped() then
      silent[client_id] = true
      client:stop(true)
    end
  end, M.ANSWER_MS)
end

--- What was the matter with a server that was ended here, or nil.
function M.silence(client_id)
  return silent[client_id] and ("no answer for %g s"):format(M.ANSWER_MS / 1000) or nil
end

--- What it ended with.
function M.how_it_ended(code, signal)
  return signal ~= 0 and ("signal %d"):format(signal) or ("exit status %d"):format(code)
end

--- Note that it ended unasked. A sentence, where it is not to be started again.
function M.crashed(how)
  if not crashes.add(counts, vim.uv.hrtime() / 1e9) then
    return nil
  end
  local words = crashes.last_words(table.concat(M.printed(), "\n"))
  local said = words ~= "" and (', after it said "%s"'):format(words) or ""
  local text = "the server ended %d times in short order, the last time with %s%s;"
    .. " `:Foregram restart` tries again"
  return text:format(#counts.times, how, said)
end

--- Forget the ends so far.
function M.forget_crashes()
  counts = crashes.new()
end

--- Remove what is only of use while Neovim runs.
function M.clean_up()
  os.remove(log_path())
end

return M
