"""The editor's side: the language server and the `foregram` command, without torch."""
