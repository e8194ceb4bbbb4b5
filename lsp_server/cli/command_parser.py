"""A command-line parser whose errors are one sentence and suggest the option that was meant."""

import argparse
import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from lsp_server.cli.messages import visible

_NUMBER = re.compile("[0-9]{1,9}")
Options = Mapping[str, "str | Options"]  # purposes by option, and options by a group's title
JSON = {"--json": "print one line of JSON instead"}  # for output that programs read
_WRONG = 2  # exit status of an invalid command line


class CommandParser(argparse.ArgumentParser):
    """Suggests options for misspelt ones. Adds a command's options on first use, to save 10 ms."""

    deferred: "Options | Callable[[CommandParser], None] | None" = None

    def add_now(self) -> None:
        """Add the options or commands that were deferred."""
        deferred, self.deferred = self.deferred, None
        if callable(deferred):
            deferred(self)
        elif deferred is not None:
            add_options(self, deferred)

    def with_commands(self) -> "Iterator[CommandParser]":
        """Yield this parser and those of all commands below, each with its options."""
        self.add_now()
        yield self
        for action in self._actions:
            if isinstance(action.choices, dict):
                for command in action.choices.values():
                    yield from command.with_commands()

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
    """A command: name, purpose, example arguments, and options or a function that adds them."""

    name: str
    purpose: str
    example: str
    options: Options | Callable[[CommandParser], None]
    run: str = ""  # `module:function`, imported late, as `--help` loads no torch; "" for a group


def add_commands(
    parser: argparse.ArgumentParser,
    noun: str,
    commands: Iterable[Command],
    package: str = "lsp_server.cli",
) -> None:
    """Let `parser` accept these commands of `package`, and store the name in the field `noun`."""
    group = parser.add_subparsers(
        title=f"{noun}s",
        dest=noun,
        metavar=noun.upper(),
        required=True,
        parser_class=CommandParser,
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
        added.deferred = command.options


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


def add_options(parser: argparse._ActionsContainer, options: Options) -> None:
    """Add options to `parser`; each key is an option as help shows it, or a group's title.

    `--port PORT` takes a value of that type, `--layout line|psm` one of these words, a flag none.
    `...` takes several values, `=8012` is the default, and `[name NAME]` may be missing.
    """
    for option, purpose in options.items():
        if not isinstance(purpose, str):
            add_options(parser.add_argument_group(option), purpose)
            continue
        kind: dict[str, Any] = {"help": purpose}
        is_optional = option.startswith("[")
        *names, value = (option[1:-1] if is_optional else option).split()
        if value.startswith("="):
            kind["default"], value = value[1:], names.pop()
        if value == "...":
            kind["nargs"], value = "*" if is_optional else "+", names.pop()
            if names[0].startswith("-"):
                kind |= {"action": "extend", "default": []}
        elif is_optional:
            kind["nargs"] = "?"
        if value.startswith("-"):
            names.append(value)
            kind["action"] = "store_true"
        elif "|" in value:
            kind["choices"] = value.split("|")
        else:
            kind |= {"metavar": value, "type": _TYPES.get(value)}
        added = parser.add_argument(*names, **kind)
        if kind.get("type") is Path or value.startswith("FILE"):
            what = "directory" if value == "DIR" else "file"
            added.complete = what  # type: ignore[attr-defined]  # shtab reads it
