"""The `foregram` command."""
