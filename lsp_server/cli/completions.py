"""`foregram completions`: its own command line for bash, zsh and fish, and as a manual page."""

import argparse
import sys

import shtab

from engine import VERSION
from lsp_server.cli.arguments import build_parser
from lsp_server.cli.command_parser import CommandParser
from lsp_server.settings import Settings

_WIDTH = 70  # of a usage, so that `man` leaves its lines as they are


def print_completions(arguments: argparse.Namespace, _settings: Settings) -> None:
    """Print what completes the command line in a shell, or the page for `man`."""
    top, *commands = build_parser().with_commands()
    is_page = arguments.what == "man"
    sys.stdout.write(_page(top, commands) if is_page else shtab.complete(top, arguments.what))


def _page(top: CommandParser, commands: list[CommandParser]) -> str:
    parts = [".SH NAME", f"foregram - {top.description}", ".SH DESCRIPTION", _part(top)]
    parts.append(".SH COMMANDS")
    parts += [f".SS {command.prog}\n{_part(command)}" for command in commands]
    # A plain hyphen might be shown as a typographic one, which cannot be typed.
    body = "\n".join(parts).replace("\\", r"\e").replace("-", r"\-")
    return f'.TH FOREGRAM 1 "" "foregram {VERSION}" foregram\n.nh\n{body}'  # no word is broken


def _part(parser: CommandParser) -> str:
    parser.formatter_class = _PageFormatter
    parser.color = False  # type: ignore[attr-defined]  # as Python 3.14 does for a terminal
    return parser.format_help().strip().replace("\n\n", "\n.PP\n")


class _PageFormatter(argparse.RawDescriptionHelpFormatter):
    """Writes help in the language of manual pages."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_WIDTH)

    def _format_action(self, action: argparse.Action) -> str:
        if isinstance(action.choices, dict):  # each command has a part of its own
            return ""
        return f".TP\n.B {self._format_action_invocation(action)}\n{self._expand_help(action)}\n"
