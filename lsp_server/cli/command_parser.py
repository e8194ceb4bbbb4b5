"""A parser of command lines whose errors are one sentence, with the word that was meant."""

import argparse
import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from lsp_server.cli.report import visible

_NUMBER = re.compile("[0-9]{1,9}")
_WRONG = 2  # exit status of a command line that makes no sense


class CommandParser(argparse.ArgumentParser):
    """Knows which word was meant. A command's options are added once it is asked for.

    All of them would take a language server's start 10 ms longer.
    """

    elsewhere: Mapping[str, str] = MappingProxyType({})  # what to say of words that are none here
    _add_options: Callable[["CommandParser"], None] | None = None

    def add_later(self, add_options: Callable[["CommandParser"], None]) -> None:
        """Have `add_options` add the options and commands."""
        self._add_options = add_options

    def add_now(self) -> None:
        """Add what was left for later."""
        add_options, self._add_options = self._add_options, None
        if add_options is not None:
            add_options(self)

    def parse_known_args(  # type: ignore[override]  # its overloads are of one function
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Reject an unknown word here, where the options are known that may have been meant."""
        self.add_now()
        words = sys.argv[1:] if args is None else args
        # Before a word that is missing is asked for: `foregram --vresion` lacks no command.
        for word in takewhile(lambda word: word.startswith("--"), words):
            begun = word.partition("=")[0]
            if not any(option.startswith(begun) for option in self._option_string_actions):
                self._refuse([word])
        known, unknown = super().parse_known_args(words, namespace)
        self._refuse(unknown)
        return known, unknown

    def _refuse(self, words: Sequence[str]) -> None:
        if not words:
            return
        word = words[0].partition("=")[0]
        if not word.startswith("-"):
            names = (str(one.metavar) for one in self._actions if not one.option_strings)
            expected = " ".join([self.prog, *names])
            self.error(f"`{word}` is one word too many: expected `{expected}`")
        hint = self.elsewhere.get(word) or _meant(word, self._option_string_actions)
        self.error(f"there is no option `{word}`{hint}")

    def error(self, message: str) -> NoReturn:
        """Say it in one sentence and exit."""
        sys.stderr.write(f"foregram: {visible(message)} (`{self.prog} --help` shows an example)\n")
        raise SystemExit(_WRONG)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        names = action.choices if action.nargs == argparse.PARSER else None
        if names is not None and value not in names:
            noun, word = str(action.metavar).lower(), str(value)
            hint = self.elsewhere.get(word) or _meant(word, names, listed=True)
            self.error(f"there is no {noun} `{word}`{hint}")
        super()._check_value(action, value)


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

    The modules of their functions lie in `package`.
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
        added.add_later(command.add_options)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Let a command print what programs read."""
    parser.add_argument("--json", action="store_true", help="print one line of JSON instead")


def positive(text: str) -> int:
    """A whole number from 1, as options take it."""
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        shown = reprlib.repr(text)
        raise argparse.ArgumentTypeError(f"{shown} is not a positive number of at most 9 digits")
    return int(text)


def _meant(word: str, known: Iterable[str], *, listed: bool = False) -> str:
    from difflib import get_close_matches  # 5 ms, which a right command line does not pay

    names = sorted(known)
    if near := get_close_matches(word, names, n=1):
        return f"; did you mean `{near[0]}`?"
    return f"; there are: {', '.join(names)}" if listed else ""
