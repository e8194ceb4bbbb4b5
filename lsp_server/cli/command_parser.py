"""A command-line parser whose errors are one sentence and suggest the option that was meant."""

import argparse
import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from lsp_server.cli.messages import visible

_NUMBER = re.compile("[0-9]{1,9}")
_WRONG = 2  # exit status of an invalid command line


class CommandParser(argparse.ArgumentParser):
    """A parser that suggests options for misspelt ones, and adds a command's options on first use.

    Adding those of all commands would delay the start of a language server by 10 ms.
    """

    add_options: Callable[["CommandParser"], None] | None = None

    def add_now(self) -> None:
        """Add the options and commands that were deferred."""
        add_options, self.add_options = self.add_options, None
        if add_options is not None:
            add_options(self)

    def parse_known_args(  # type: ignore[override]  # its overloads are of one function
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, or refuse an unknown word with the nearest option of this command."""
        self.add_now()
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            from difflib import get_close_matches  # takes 5 ms, only worth it here

            word = unknown[0].partition("=")[0]
            near = get_close_matches(word, self._option_string_actions, n=1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            self.error(f"`{word}` is not expected here{hint}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        """Print the message as one sentence and exit with status 2."""
        sys.stderr.write(f"foregram: {visible(message)} (`{self.prog} --help` shows an example)\n")
        raise SystemExit(_WRONG)


class Command(NamedTuple):
    """A command: name, purpose, example arguments, and the function that adds its options.

    `run` is `module:name` of a function that takes arguments and settings and returns an exit
    status, or None for 0. Its module is imported when the command runs, so `--help` loads no torch.
    """

    name: str
    purpose: str
    example: str
    add_options: Callable[[CommandParser], None]
    run: str = ""  # empty for a group: each of its commands has its own


def add_commands(
    parser: argparse.ArgumentParser,
    noun: str,
    commands: Iterable[Command],
    package: str = "lsp_server.cli",
) -> None:
    """Let `parser` accept one of these commands, and store its name in the field `noun`.

    `package` holds the modules of their functions.
    """
    group = parser.add_subparsers(
        dest=noun, metavar=noun.upper(), required=True, parser_class=CommandParser
    )
    for command in commands:
        added = group.add_parser(
            command.name,
            help=command.purpose,
            description=f"{command.purpose[0].upper()}{command.purpose[1:]}.",
            epilog=f"example:\n  {parser.prog} {command.name} {command.example}".rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(run=command.run and f"{package}.{command.run}")
        added.add_options = command.add_options


def positive(text: str) -> int:
    """Return the positive number that `text` spells. Raises ArgumentTypeError."""
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        shown = reprlib.repr(text)
        raise argparse.ArgumentTypeError(f"{shown} is not a positive number of at most 9 digits")
    return int(text)


_TYPES: dict[str, Callable[[str], object]] = {  # by a value's name in the help; else str
    **dict.fromkeys(("DIR", "FILE", "FILE.jsonl", "PATH", "PREFIX", "SET.jsonl"), Path),
    **dict.fromkeys(("COUNT", "MB", "N"), positive),
    **dict.fromkeys(("P", "SECONDS", "T"), float),
    **dict.fromkeys(("PORT", "SEED"), int),
}


def add_options(
    parser: argparse._ActionsContainer,
    options: Mapping[str, str],
    **more: Any,  # noqa: ANN401 - as argparse takes it
) -> None:
    """Add options to `parser` or to a group; each key is an option as help shows it.

    `--port PORT` takes a value of the type of that name, `--layout line|psm` one of these words. An
    option without a value is a flag. `more` goes to each `add_argument`.
    """
    for option, purpose in options.items():
        *names, value = option.split()
        if value.startswith("-"):
            names.append(value)
            kind: dict[str, Any] = {"action": "store_true"}
        else:
            choices = value.split("|") if "|" in value else None
            metavar = None if choices else value
            kind = {"metavar": metavar, "type": _TYPES.get(value), "choices": choices}
        parser.add_argument(*names, help=purpose, **kind | more)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`, for output that programs read."""
    add_options(parser, {"--json": "print one line of JSON instead"})
