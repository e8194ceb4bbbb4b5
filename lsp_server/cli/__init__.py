"""The `foregram` command."""

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit status. Importing this package loads no command."""
    from lsp_server.cli import command_line  # noqa: PLC0415 - who asks for a part alone needs no other

    return command_line.main(argv)
