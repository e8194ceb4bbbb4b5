-- Defines `:Foregram`; everything else is loaded when it is needed.

vim.api.nvim_create_user_command("Foregram", function(command)
  local range = { first = command.line1, last = command.line2, is_given = command.range > 0 }
  require("foregram.commands").run(command.fargs, range, command.args)
end, {
  nargs = "*",
  range = true,
  desc = "foregram: suggestions from your own model",
  complete = function(lead, line)
    return require("foregram.commands").complete(lead, line)
  end,
})
