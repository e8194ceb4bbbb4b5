--- What mends a state, by the server's word for it: what to type here. Knows no editor.

local M = {}

local WHAT = {
  allowFile = "name it in `allow_secret_files`, see `:help foregram-settings`",
  chooseHost = "set `host_url`, see `:help foregram-remote`",
  chooseModel = "`foregram setup` in a terminal, or `:Foregram model NAME`",
  doctor = "`:Foregram doctor`",
  enable = "`:Foregram enable`",
  openSettings = "see `:help foregram-settings`",
  reopenFile = "`:edit`",
  restart = "`foregram stop` in a terminal, then `:Foregram restart`",
  saveFile = "`:write`",
  setToken = "set `token_file`, see `:help foregram-remote`",
  showLogs = "`:Foregram logs`",
}

--- A remedy as a line: its title, and what to type. `place` has the buffer's `language`, the key that
--- `trigger`s, and the name of the `model` to have where another one runs.
function M.line(remedy, place)
  local what = WHAT[remedy.action]
  if remedy.action == "enableLanguage" then
    what = ("`:Foregram enable %s`"):format(place.language)
  elseif remedy.action == "restart" and place.model then
    what = ("`:Foregram model %s`"):format(place.model)
  elseif remedy.action == "trigger" and place.trigger then
    what = ("`%s` in insert mode"):format(place.trigger)
  end
  return what and ("%s: %s"):format(remedy.title, what) or remedy.title
end

--- What to do after the model failed, for the end of its sentence.
function M.after_failure(remedy)
  local needs_model = remedy and remedy.action == "chooseModel"
  local before = needs_model and "`foregram setup` in a terminal installs one that fits, then " or ""
  return before .. "`:Foregram restart` tries again"
end

return M
