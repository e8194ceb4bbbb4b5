---@brief
---
--- https://github.com/foregram/foregram
---
--- Code completion from your own model, on your own machine.
---
--- ```sh
--- uv tool install foregram
--- foregram setup
--- ```
---
--- Neovim 0.12 shows its suggestions as ghost text. It maps no key by itself:
---
--- ```lua
--- vim.lsp.enable('foregram')
--- vim.lsp.inline_completion.enable()
--- vim.keymap.set('i', '<Tab>', function()
---   return vim.lsp.inline_completion.get() and '' or '<Tab>'
--- end, { expr = true })
--- ```
---
--- On Neovim 0.11 the suggestions are entries of the completion menu:
---
--- ```lua
--- vim.lsp.config('foregram', { init_options = { foregram = { completion_fallback = true } } })
--- vim.lsp.enable('foregram')
--- ```

---@type vim.lsp.Config
return {
  cmd = { 'foregram', 'lsp' },
  root_markers = { '.git', '.hg', '.foregramignore' },
}
