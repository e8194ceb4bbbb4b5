-- Defines `:Foregram`; everything else is loaded when it is needed.

vim.api.nvim_create_user_command("Foregram", function(command)
  require("foregram.commands").run(command.fargs)
end, {
  nargs = "*",
  desc = "foregram: suggestions from your own model",
  complete = function(lead, line)
    return require("foregram.commands").complete(lead, line)
  end,
})
