"""A parser of command lines whose errors are one sentence, with the option that was meant."""

import argparse
import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from lsp_server.cli.messages import visible

_NUMBER = re.compile("[0-9]{1,9}")
_WRONG = 2  # exit status of a command line that makes no sense


class CommandParser(argparse.ArgumentParser):
    """Knows which option was meant. A command's options are added once it is asked for.

    All of them would take a language server's start 10 ms longer.
    """

    add_options: Callable[["CommandParser"], None] | None = None

    def add_now(self) -> None:
        """Add the options and commands that were left for later."""
        add_options, self.add_options = self.add_options, None
        if add_options is not None:
            add_options(self)

    def parse_known_args(  # type: ignore[override]  # its overloads are of one function
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse an unknown word here, where the options are known that may have been meant."""
        self.add_now()
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            from difflib import get_close_matches  # 5 ms, which a right command line does not pay

            word = unknown[0].partition("=")[0]
            near = get_close_matches(word, self._option_string_actions, n=1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            self.error(f"`{word}` is not expected here{hint}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        """Say it in one sentence and exit."""
        sys.stderr.write(f"foregram: {visible(message)} (`{self.prog} --help` shows an example)\n")
        raise SystemExit(_WRONG)


class Command(NamedTuple):
    """A command's name, its purpose, an example of its arguments, and what adds its options.

    `run` is its function, `module:name`, of arguments and settings; it returns an exit status, or
    None for 0. The module is imported when the command runs: `--help` loads no torch.
    """

    name: str
    purpose: str
    example: str
    add_options: Callable[[CommandParser], None]
    run: str = ""  # of a group of commands, which each have their own


def add_commands(
    parser: argparse.ArgumentParser,
    noun: str,
    commands: Iterable[Command],
    package: str = "lsp_server.cli",
) -> None:
    """Have `parser` take one of these commands; the arguments' field `noun` says which one.

    The modules of their functions are in `package`.
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
    """A whole number from 1, as options take it."""
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        shown = reprlib.repr(text)
        raise argparse.ArgumentTypeError(f"{shown} is not a positive number of at most 9 digits")
    return int(text)


_TYPES: dict[str, Callable[[str], object]] = {  # by how help calls a value; else it is a string
    **dict.fromkeys(("DIR", "FILE", "FILE.jsonl", "FILE.png", "PATH", "PREFIX", "SET.jsonl"), Path),
    **dict.fromkeys(("COUNT", "MB", "N"), positive),
    **dict.fromkeys(("P", "SECONDS", "T"), float),
    **dict.fromkeys(("PORT", "SEED"), int),
}


def add_options(
    parser: argparse._ActionsContainer,
    options: Mapping[str, str],
    **more: Any,  # noqa: ANN401 - as argparse takes it
) -> None:
    """Let `parser`, or a group of one, take options, each as help shows it, with its purpose.

    `--port PORT` has a value of the type of that name, `--layout line|psm` one of these; what has
    none is a flag. `more` holds for each of them.
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
    """Let a command print what programs read."""
    add_options(parser, {"--json": "print one line of JSON instead"})
