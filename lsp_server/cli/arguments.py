"""The command line: commands, options and their defaults. It runs nothing."""

import argparse
from pathlib import Path

from engine.version import VERSION
from lsp_server.cli.command_parser import Command, CommandParser, add_commands, add_json, positive
from lsp_server.cli.engine_arguments import add_decoding, add_model


def build_parser() -> argparse.ArgumentParser:
    """`args.command` and, for bench, `args.benchmark` say what was asked for."""
    parser = CommandParser(
        prog="foregram",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Code completion from your own model.",
        epilog="example:\n  foregram complete src/shop.py:41 --open src/orders.py\n\n"
        "Settings come from foregram.toml, FOREGRAM_* variables and options; see the README.",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"foregram {VERSION}",
        help="print the version and exit",
    )
    add_commands(parser, "command", _COMMANDS)
    return parser


def _add_benchmarks(parser: CommandParser) -> None:
    from lsp_server.cli.bench_arguments import add_benchmarks

    add_benchmarks(parser)


def _add_complete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "where",
        metavar="FILE:LINE[:COL]",
        help="the cursor, counted from 1: before the character COL, or at the line's end",
    )
    parser.add_argument(
        "--open",
        metavar="FILE",
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        help="other open files, most related first: the model reads excerpts of them, and "
        "drafts come from their text",
    )
    add_model(parser)
    add_decoding(parser, max_tokens=256)
    add_json(parser)


def _add_serve(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    _add_upstream(parser)
    group = parser.add_argument_group("address")
    group.add_argument("--socket", metavar="PATH", type=Path, help="listen on a Unix socket")
    group.add_argument(
        "--host", metavar="ADDRESS", help="listen on this address; 127.0.0.1 by default"
    )
    group.add_argument("--port", type=int, help="and on this port; 8012 by default")
    group.add_argument(
        "--token-file",
        metavar="FILE",
        type=Path,
        help="clients have to send a token of this file: one token, or lines NAME:TOKEN (or "
        "NAME:sha256:HEX), read again upon SIGHUP; without it, the host serves only this machine, "
        "and creates a token that your own clients find",
    )
    group.add_argument(
        "--tls-cert", metavar="FILE", type=Path, help="serve over TLS with this certificate (PEM)"
    )
    group.add_argument(
        "--tls-key", metavar="FILE", type=Path, help="the certificate's private key (PEM)"
    )
    group.add_argument(
        "--insecure",
        action="store_true",
        help="serve other machines without TLS: anyone on the network can read code and token",
    )
    parser.add_argument(
        "--api",
        metavar="NAME[,NAME]",
        dest="apis",
        action="append",
        help="speak these APIs of other programs besides: openai (the default), mistral, "
        "llama-cpp, tabby; or none; may be given again",
    )
    parser.add_argument(
        "--idle-exit", metavar="S", type=float, help="exit after S seconds without a request"
    )
    parser.add_argument(
        "--record", metavar="FILE", type=Path, help="empty this file when the host ends well"
    )
    _add_replicas(parser)
    group = parser.add_argument_group("resources")
    group.add_argument(
        "--kv-budget",
        metavar="MB",
        dest="kv_budget_mb",
        type=positive,
        help="memory for cached prompts",
    )
    group.add_argument(
        "--quota",
        metavar="NAME=VALUE",
        dest="quotas",
        action="append",
        default=[],
        help="what each user of the token file may have: clients, buffers, megabytes of them, tokens "
        "of a completion, requests (a second), waiting and running ones",
    )
    group.add_argument("--threads", metavar="N", type=positive, help="threads that torch uses")
    group.add_argument("--prompt-tokens", metavar="N", type=positive, help="the longest prompt")
    group.add_argument(
        "--cache-folder", metavar="DIR", type=Path, help="converted models, learned acceptance"
    )


def _add_replicas(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("several hosts under one address")
    group.add_argument(
        "--replicas",
        metavar="N|MIN-MAX",
        help="so many hosts on Ray Serve (the extra `scale`), of which each keeps its workspaces; "
        "between two numbers, as many as the load wants",
    )
    group.add_argument(
        "--replica-load",
        metavar="N",
        type=positive,
        help="requests that run or wait at each, at which the number of replicas aims; 8 by default",
    )
    group.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="a Ray that runs already, or auto for the one that this machine is part of; it is "
        "started on this machine by default",
    )


def _add_upstream(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("an engine that runs already")
    group.add_argument(
        "--backend",
        choices=("foregram", "openai"),
        default="foregram",
        help="what generates: a model that is loaded here (default), or an engine behind OpenAI's "
        "/v1/completions, such as vLLM, SGLang, TensorRT-LLM or llama.cpp; --model then says which "
        "model that runs, where its name does not",
    )
    group.add_argument("--upstream", metavar="URL", help="its address")
    group.add_argument(
        "--upstream-model", metavar="NAME", help="what it calls the model; needed if it has several"
    )
    group.add_argument(
        "--upstream-token-file", metavar="FILE", type=Path, help="holds the token that it wants"
    )
    group.add_argument(
        "--upstream-ca-file",
        metavar="FILE",
        type=Path,
        help="certificates to trust for it in addition to the system's",
    )
    group.add_argument(
        "--upstream-context",
        metavar="N",
        type=positive,
        help="tokens of prompt and completion that it has room for; asked of it by default",
    )
    group.add_argument(
        "--upstream-insecure",
        action="store_true",
        help="ask it without TLS on another machine: anyone on the network can read code and token",
    )


def _add_lsp(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--stdio", action="store_true", help="talk over stdin and stdout (default)")
    group.add_argument("--socket", metavar="PATH", type=Path, help="listen on a Unix socket")
    group.add_argument("--port", help=argparse.SUPPRESS)  # gone, and named so
    parser.add_argument("--model", metavar="NAME", help="the model of a host that is started")
    parser.add_argument("--host-url", metavar="URL", help="use this remote host")


def _add_stop(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="even if editors are using it")


def _add_logs(parser: argparse.ArgumentParser) -> None:
    _add_lines(parser, 50)
    parser.add_argument("-f", "--follow", action="store_true", help="continue until Ctrl-C")


def _add_why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, nargs="?", help="only of this file")
    _add_lines(parser, 20)
    add_json(parser)


def _add_models(parser: argparse.ArgumentParser) -> None:
    actions = ("list", "install", "remove")
    parser.add_argument(
        "action", nargs="?", choices=actions, default="list", help="list by default"
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="as the setting `model` takes it")


def _add_uninstall(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument("--start", action="store_true", help="start the host if none is running")
    parser.add_argument(
        "--cards",
        action="store_true",
        help="print instead which models fit GPUs of 8 to 140 GB, and which one `auto` takes",
    )


def _add_lines(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument(
        "-n",
        "--lines",
        metavar="N",
        type=positive,
        default=default,
        help=f"only the last N lines; {default} by default",
    )


_COMMANDS = (
    Command(
        "complete",
        "complete the code at a cursor in a file",
        "src/shop.py:41 --open src/orders.py src/items.py",
        _add_complete,
        "complete:show_completion",
    ),
    Command(
        "bench",
        "measure how fast text is decoded here",
        "replay insertions.jsonl --count 20",
        _add_benchmarks,
    ),
    Command(
        "serve",
        "run the completion host",
        "--host 0.0.0.0 --token-file token --tls-cert cert.pem --tls-key key.pem",
        _add_serve,
        "serve:serve",
    ),
    Command(
        "lsp", "run the language server for an editor", "--model 1.5b", _add_lsp, "lsp:serve_editor"
    ),
    Command(
        "status", "show what the host is doing", "--json", add_json, "host_commands:show_status"
    ),
    Command("stop", "stop the local host", "", _add_stop, "host_commands:stop"),
    Command(
        "logs", "show the local host's log", "-n 200 --follow", _add_logs, "host_commands:show_logs"
    ),
    Command("why", "explain why no suggestion appeared", "a.py", _add_why, "why:show_why"),
    Command(
        "doctor",
        "check everything, and say what to do",
        "--start",
        _add_doctor,
        "doctor:show_doctor",
    ),
    Command(
        "models",
        "list, install and remove models, with what each holds on disk and in memory",
        "install offline-1.5b",
        _add_models,
        "models:manage_models",
    ),
    Command(
        "uninstall",
        "remove the environment, models, state and caches, after asking",
        "--yes",
        _add_uninstall,
        "uninstall:uninstall",
    ),
)
