"""The command line: commands, options and their defaults. It runs nothing."""

import argparse
from functools import partial
from pathlib import Path

from engine import VERSION
from lsp_server.cli.command_parser import (
    Command,
    CommandParser,
    add_commands,
    add_json,
    add_options,
)
from lsp_server.cli.engine_arguments import add_decoding, add_model

_SERVE = {
    "address": {
        "--socket PATH": "listen on a Unix socket",
        "--host ADDRESS": "listen on this address; 127.0.0.1 by default",
        "--port PORT": "and on this port; 8012 by default",
        "--token-file FILE": "clients have to send a token of this file: one token, or lines "
        "NAME:TOKEN (or NAME:sha256:HEX), read again upon SIGHUP; without it, the host serves only "
        "this machine, and creates a token that your own clients find",
        "--tls-cert FILE": "serve over TLS with this certificate (PEM)",
        "--tls-key FILE": "the certificate's private key (PEM)",
        "--insecure": "serve other machines without TLS: anyone on the network can read code and "
        "token",
    },
    "an engine that runs already": {
        "--backend foregram|openai": "what generates: a model that is loaded here (foregram, the "
        "default), or an engine behind OpenAI's /v1/completions, such as vLLM, SGLang, TensorRT-LLM "
        "or llama.cpp; --model then says which model that runs, where its name does not",
        "--upstream URL": "its address",
        "--upstream-model NAME": "what it calls the model; needed if it has several",
        "--upstream-token-file FILE": "holds the token that it wants",
        "--upstream-ca-file FILE": "certificates to trust for it in addition to the system's",
        "--upstream-context N": "tokens of prompt and completion that it has room for; asked of it "
        "by default",
        "--upstream-insecure": "ask it without TLS on another machine: anyone on the network can "
        "read code and token",
    },
    "several hosts under one address": {
        "--replicas MIN[-MAX]": "so many hosts on Ray Serve (the extra `scale`), of which each keeps "
        "its workspaces; between two numbers, as many as the load wants",
        "--replica-load N": "requests that run or wait at each, at which the number of replicas "
        "aims; 8 by default",
        "--cluster ADDRESS": "a Ray that runs already, or auto for the one that this machine is part "
        "of; it is started on this machine by default",
    },
    "resources": {
        "--kv-budget MB": "memory for cached prompts",
        "--threads N": "threads that torch uses",
        "--prompt-tokens N": "the longest prompt",
        "--cache-folder DIR": "converted models, learned acceptance",
    },
}
_QUOTA = (
    "what each user of the token file may have: clients, buffers, megabytes of them, tokens of a "
    "completion, requests (a second), waiting and running ones"
)
_API = (
    "speak these APIs of other programs besides: openai (the default), mistral, llama-cpp, tabby; or "
    "none; may be given again"
)
_GPU = {
    "--shapes NAMES": "models with random weights: 0.5b,1.5b,7b,32b; all of them by default",
    "--dtype bfloat16|fp8|int4": "how weights are held; bfloat16 by default",
    "--save PREFIX": "write PREFIX.json after every section; gpu-bench by default",
    "--check": "only check that the kernels are right here, and a row the same whatever is beside "
    "it; PREFIX.json is a report to send us: it names no file of yours",
}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser; it stores the command in `command`, a benchmark in `benchmark`."""
    parser = CommandParser(
        prog="foregram",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Code completion from your own model.",
        epilog="example:\n  foregram complete src/shop.py:41 --open src/orders.py\n\n"
        "Settings come from foregram.toml, FOREGRAM_* variables and options; see the README.",
    )
    version = {"--version": "print the version and exit"}
    add_options(parser, version, action="version", version=f"foregram {VERSION}")
    add_commands(parser, "command", _COMMANDS)
    return parser


def _add_complete(parser: argparse.ArgumentParser) -> None:
    where = "the cursor, counted from 1: before the character COL, or at the line's end"
    add_options(parser, {"where FILE:LINE[:COL]": where})
    others = (
        "other open files, most related first: the model reads excerpts of them, and drafts come "
        "from their text"
    )
    add_options(parser, {"--open FILE": others}, nargs="+", action="extend", default=[])
    add_model(parser)
    add_decoding(parser, max_tokens=256)
    add_json(parser)


def add_replay(parser: argparse.ArgumentParser) -> None:
    """Add the options of a replay."""
    add_replay_set(parser)
    add_model(parser)
    add_decoding(parser, max_tokens=64)
    add_json(parser)


def add_replay_set(parser: argparse.ArgumentParser) -> None:
    """Add the replay set and the number of its items."""
    count = "only the first COUNT items"
    add_options(parser, {"file FILE.jsonl": "a replay set", "--count COUNT": count})


def _add_step(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_json(parser)


def _add_gpu(parser: argparse.ArgumentParser) -> None:
    add_options(parser, _GPU)
    add_json(parser)
    parser.set_defaults(save=Path("gpu-bench"))


def _add_serve(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    for title, options in _SERVE.items():
        add_options(parser.add_argument_group(title), options)
    add_options(parser, {"--api NAME[,NAME]": _API}, dest="apis", action="append")
    add_options(parser, {"--quota NAME=VALUE": _QUOTA}, dest="quotas", action="append")
    seconds = "exit after so many seconds without a request"
    record = "empty this file when the host ends well"
    add_options(parser, {"--idle-exit SECONDS": seconds, "--record FILE": record})
    parser.set_defaults(backend="foregram", quotas=[])


def _add_lsp(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    stdio = "talk over stdin and stdout (default)"
    add_options(group, {"--stdio": stdio, "--socket PATH": "listen on a Unix socket"})
    model = "the model of a host that is started"
    add_options(parser, {"--model NAME": model, "--host-url URL": "use this remote host"})


def _add_logs(parser: argparse.ArgumentParser) -> None:
    _add_lines(parser, 50)
    add_options(parser, {"-f --follow": "continue until Ctrl-C"})


def _add_why(parser: argparse.ArgumentParser) -> None:
    add_options(parser, {"file FILE": "only of this file"}, nargs="?")
    _add_lines(parser, 20)
    add_json(parser)


def _add_models(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser, {"action list|install|remove": "list by default"}, nargs="?", default="list"
    )
    add_options(parser, {"name NAME": "as the setting `model` takes it"}, nargs="?")


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    cards = "print instead which models fit GPUs of 8 to 140 GB, and which one `auto` takes"
    add_options(parser, {"--start": "start the host if none is running", "--cards": cards})


def _add_lines(parser: argparse.ArgumentParser, default: int) -> None:
    last = f"only the last N lines; {default} by default"
    add_options(parser, {"-n --lines N": last}, default=default)


_BENCHMARKS = (
    Command(
        "replay",
        "decode real insertions and edits, with lookahead and without",
        "insertions.jsonl --count 20",
        add_replay,
        "bench:bench_replay",
    ),
    Command("step", "measure what a step takes here", "--json", _add_step, "bench:bench_step"),
    Command(
        "gpu",
        "check an NVIDIA GPU's kernels, and measure steps and prompts",
        "--shapes 0.5b",
        _add_gpu,
        "bench:bench_gpu",
    ),
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
        partial(add_commands, noun="benchmark", commands=_BENCHMARKS),
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
    Command(
        "stop",
        "stop the local host",
        "",
        partial(add_options, options={"--force": "even if editors are using it"}),
        "host_commands:stop",
    ),
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
        partial(add_options, options={"--yes": "do not ask"}),
        "uninstall:uninstall",
    ),
)
