"""The command line's words: commands, options and their defaults. It runs nothing."""

import argparse
import sys
from pathlib import Path

from lsp_server.cli.bench_arguments import add_benchmarks
from lsp_server.cli.command_parser import CommandParser, add_command, positive
from lsp_server.cli.engine_arguments import add_decoding, add_model


class _Version(argparse.Action):
    """Prints the version. To look it up takes 30 ms, which every start would pay otherwise."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print and exit."""
        from importlib.metadata import version

        sys.stdout.write(f"foregram {version('foregram')}\n")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """`args.command` and, for bench, `args.benchmark` say what was asked for."""
    parser = CommandParser(
        prog="foregram",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Code completion from your own model, several tokens per step.",
        epilog="example:\n  foregram complete src/shop.py:41 --open src/orders.py\n\n"
        "Settings: foregram.toml, FOREGRAM_* in the environment, options; see the README.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    _add_complete(
        add_command(
            commands,
            "complete",
            "complete the code at a cursor in a file",
            example="foregram complete src/shop.py:41 --open src/orders.py src/items.py",
        )
    )
    bench = add_command(
        commands,
        "bench",
        "measure drafting, decoding and quality",
        example="foregram bench replay insertions.jsonl --count 20",
    )
    add_benchmarks(bench)
    _add_serve(
        add_command(
            commands,
            "serve",
            "run the completion host",
            example="foregram serve --host 0.0.0.0 --token-file token --tls-cert cert.pem "
            "--tls-key key.pem",
        )
    )
    _add_lsp(
        add_command(
            commands,
            "lsp",
            "run the language server for an editor",
            example="foregram lsp --model 1.5b",
        )
    )
    _add_host_commands(commands)
    return parser


def _add_host_commands(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    status = add_command(
        commands, "status", "say what the host is doing", example="foregram status --json"
    )
    status.add_argument("--json", action="store_true", help="print one JSON object instead")
    stop = add_command(commands, "stop", "stop the local host", example="foregram stop")
    stop.add_argument("--force", action="store_true", help="even where editors use it")
    logs = add_command(
        commands,
        "logs",
        "show what the local host printed",
        example="foregram logs -n 200 --follow",
    )
    _add_lines(logs, 50)
    logs.add_argument("-f", "--follow", action="store_true", help="go on until Ctrl-C")
    why = add_command(
        commands, "why", "say why the last empty answers were empty", example="foregram why a.py"
    )
    why.add_argument("file", metavar="FILE", type=Path, nargs="?", help="of this file alone")
    _add_lines(why, 20)
    why.add_argument("--json", action="store_true", help="print one JSON list instead")
    doctor = add_command(
        commands,
        "doctor",
        "examine everything, and say what to do",
        example="foregram doctor --start",
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON list instead")
    doctor.add_argument("--start", action="store_true", help="start the host where there is none")


def _add_lines(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument(
        "-n",
        "--lines",
        metavar="N",
        type=positive,
        default=default,
        help=f"only the last N lines; {default} by default",
    )


def _add_serve(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    place = parser.add_argument_group("place")
    place.add_argument("--socket", metavar="PATH", type=Path, help="listen on a unix socket")
    place.add_argument(
        "--host", default="127.0.0.1", help="listen on this address; 127.0.0.1 by default"
    )
    place.add_argument(
        "--port", type=int, default=8012, help="listen on this port of it; 8012 by default"
    )
    place.add_argument(
        "--token-file",
        metavar="FILE",
        type=Path,
        help="clients must know the token in it; without one the host stays on this machine, and "
        "makes a token that your own clients find",
    )
    place.add_argument(
        "--tls-cert", metavar="FILE", type=Path, help="serve over TLS with this certificate (PEM)"
    )
    place.add_argument(
        "--tls-key", metavar="FILE", type=Path, help="the certificate's private key (PEM)"
    )
    place.add_argument(
        "--insecure",
        action="store_true",
        help="serve other machines without TLS: who listens on the way reads code and token",
    )
    parser.add_argument("--idle-exit", metavar="S", type=float, help="end after so long unused")
    parser.add_argument(
        "--record", metavar="FILE", type=Path, help="empty this file when the host ends well"
    )
    _add_resources(parser.add_argument_group("resources"))


def _add_resources(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--kv-budget",
        metavar="MB",
        dest="kv_budget_mb",
        type=positive,
        help="memory for cached prompts",
    )
    group.add_argument("--threads", metavar="N", type=positive, help="threads that torch uses")
    group.add_argument("--prompt-tokens", metavar="N", type=positive, help="the longest prompt")
    group.add_argument(
        "--cache-folder", metavar="DIR", type=Path, help="converted models, learned acceptance"
    )


def _add_lsp(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--stdio", action="store_true", help="the default")
    place.add_argument("--socket", metavar="PATH", type=Path, help="serve on a unix socket instead")
    place.add_argument(
        "--port", type=int, help="serve over TCP on this machine, clients that know a token"
    )
    parser.add_argument("--model", metavar="NAME", help="the model of a host that is started")
    parser.add_argument("--host-url", metavar="URL", help="a remote host")


def _add_complete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "where",
        metavar="FILE:LINE[:COL]",
        help="the cursor, counted from 1; COL counts characters and the cursor stands before it; "
        "without COL it stands at the line's end",
    )
    parser.add_argument(
        "--open",
        metavar="FILE",
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        help="other files that are open, most related first: the model reads pieces of them, and "
        "their text feeds the drafts",
    )
    add_model(parser)
    add_decoding(parser, max_tokens=256)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
