"""The command line: commands, options and their defaults. It runs nothing."""

import argparse
import sys
from functools import partial
from typing import NoReturn

from engine import VERSION
from lsp_server.cli.command_parser import (
    JSON,
    Command,
    CommandParser,
    Options,
    add_commands,
    add_options,
)
from lsp_server.cli.engine_arguments import LOOKAHEAD, MODEL, decoding_options

_SERVE: Options = {
    **MODEL,
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
    "next edits": {
        "--edit-model NAME": "the model that proposes them; by default the one that completes, if it "
        "was made for them"
    },
    "an engine that runs already": {
        "--backend foregram|openai =foregram": "what generates: a model that is loaded here "
        "(foregram, the default), or an engine behind OpenAI's /v1/completions, such as vLLM, "
        "SGLang, TensorRT-LLM or llama.cpp; --model then says which model that runs, where its name "
        "does not",
        "--upstream URL": "its address",
        "--upstream-model NAME": "the engine's name for the model; needed if it has several",
        "--upstream-token-file FILE": "a file with the engine's token",
        "--upstream-ca-file FILE": "certificates to trust for it in addition to the system's",
        "--upstream-context N": "tokens of prompt and completion that fit its context; by default "
        "the engine is asked",
        "--upstream-insecure": "ask it without TLS on another machine: anyone on the network can "
        "read code and token",
    },
    "several hosts under one address": {
        "--replicas MIN[-MAX]": "the number of hosts on Ray Serve (needs the extra `scale`); each "
        "workspace stays with one of them. Between two numbers, the load decides",
        "--replica-load N": "running and waiting requests per replica that scaling aims at; 8 by "
        "default",
        "--cluster ADDRESS": "the address of a running Ray, or auto for the one that this machine is "
        "part of; by default Ray is started here",
    },
    "resources": {
        "--kv-budget MB": "memory for cached prompts",
        "--threads N": "threads that compute on the CPU",
        "--prompt-tokens N": "the longest prompt",
        "--cache-folder DIR": "models, indexes, learned and counted figures",
    },
    "--api NAME ...": "also offer these APIs of other programs: openai (the default), mistral, "
    "llama-cpp, tabby; or none",
    "--quota NAME=VALUE ...": "limits for each user of the token file: clients, buffers, megabytes "
    "of buffers, tokens of a completion, requests a second, waiting and running requests",
    "--idle-exit SECONDS": "exit after this many seconds without a request",
    "--record FILE": "empty this file when the host ends well",
}
_COMPLETE: Options = {
    "where FILE:LINE[:COL]": "the cursor, counted from 1: before the character COL, or at the "
    "line's end",
    "--open FILE ...": "other open files, most related first: the model reads excerpts of them, and "
    "drafts come from their text",
    **MODEL,
    **decoding_options(max_tokens=256),
    **JSON,
}
_EDIT: Options = {
    "where FILE[:FROM[-TO]]": "the lines to change, counted from 1; without them the whole file",
    "instruction INSTRUCTION": "what to do, in words",
    "--write": "change the file, too",
    **MODEL,
    **LOOKAHEAD,
    **JSON,
}
REPLAY_SET = {"file FILE.jsonl": "a replay set", "--count COUNT": "only the first COUNT items"}
REPLAY: Options = {**REPLAY_SET, **MODEL, **decoding_options(max_tokens=64), **JSON}
_TUNE: Options = {
    "[folder DIR]": "a folder with a git history; by default this one",
    "--minutes N =8": "stop measuring after so long; %(default)s by default",
    "--yes": "write what is better without asking",
    **MODEL,
    **JSON,
}
_GPU = {
    "--shapes NAMES": "models with random weights: 0.5b,1.5b,7b,32b; all of them by default",
    "--dtype bfloat16|fp8|int4": "how weights are held; bfloat16 by default",
    "--save PREFIX =gpu-bench": "write PREFIX.json after every section; gpu-bench by default",
    "--check": "only check that the kernels are right on this GPU, and that no row changes another; "
    "PREFIX.json is a report to send us, which names no file of yours",
}
_LSP_PLACE = {
    "--stdio": "talk over stdin and stdout (default)",
    "--socket PATH": "listen on a Unix socket",
}
_LSP = {
    "--model NAME": "the model of a host that is started",
    "--host-url URL": "use this remote host",
}
_LOGS = {
    "-n --lines N =50": "only the last N lines; %(default)s by default",
    "-f --follow": "continue until Ctrl-C",
}
_WHY = {
    "[file FILE]": "only of this file",
    "-n --lines N =20": "only the last N lines; %(default)s by default",
}
_SAVED = {"--reset": "forget all of it"}
_TOP = {"--once": "print the figures since the host's start, and end; so it is without a terminal"}
_DOCTOR = {
    "--start": "start the host if none is running",
    "--cards": "print instead which models fit GPUs of 8 to 140 GB, and which one `auto` takes",
}
_COMPLETIONS = {"what bash|zsh|fish|man": "for which shell, or the manual page"}
_SETUP = {
    "--yes": "do not ask",
    "--from-continue FILE": "take over what Continue's config.yaml says of completion, instead",
}
_MODELS = {
    "[action list|install|remove =list]": "list by default",
    "[name NAME]": "as the setting `model` takes it",
}


def build_parser() -> CommandParser:
    """Return the parser; it stores the command in `command`, a benchmark in `benchmark`."""
    parser = CommandParser(
        prog="foregram",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Code completion from your own model.",
        epilog="example:\n  foregram complete src/shop.py:41 --open src/orders.py\n\n"
        "Settings come from foregram.toml, FOREGRAM_* variables and options; see the README.",
    )
    told = "print the version with its commit, and exit"
    parser.add_argument("--version", help=told, action=_PrintVersion, nargs=0)
    add_commands(parser, "command", _COMMANDS)
    return parser


class _PrintVersion(argparse.Action):
    def __call__(self, *_: object) -> NoReturn:
        from engine.commit import commit

        known = commit()
        sys.stdout.write(f"foregram {VERSION}{known and f' ({known})'}\n")
        raise SystemExit(0)


def _add_lsp(parser: argparse.ArgumentParser) -> None:
    add_options(parser.add_mutually_exclusive_group(), _LSP_PLACE)
    add_options(parser, _LSP)


_BENCHMARKS = (
    Command(
        "replay",
        "decode real insertions and edits, with lookahead and without",
        "insertions.jsonl --count 20",
        REPLAY,
        "bench:bench_replay",
    ),
    Command(
        "step", "measure what a step takes here", "--json", {**MODEL, **JSON}, "bench:bench_step"
    ),
    Command(
        "gpu",
        "check an NVIDIA GPU's kernels, and measure steps and prompts",
        "--shapes 0.5b",
        _GPU | JSON,
        "bench:bench_gpu",
    ),
)
_COMMANDS = (
    Command(
        "complete",
        "complete the code at a cursor in a file",
        "src/shop.py:41 --open src/orders.py src/items.py",
        _COMPLETE,
        "complete:show_completion",
    ),
    Command(
        "edit",
        "change lines of a file as asked in words, and print the difference",
        'src/shop.py:10-30 "add type hints" --write',
        _EDIT,
        "edit:show_edit",
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
        _SERVE,
        "serve:serve",
    ),
    Command(
        "lsp", "run the language server for an editor", "--model 1.5b", _add_lsp, "lsp:serve_editor"
    ),
    Command("status", "show what the host is doing", "--json", JSON, "host_commands:show_status"),
    Command(
        "top",
        "watch the host's speed, waits and memory until q or Ctrl-C",
        "--once --json",
        _TOP | JSON,
        "top:show_top",
    ),
    Command(
        "saved",
        "show the keystrokes that suggestions saved, by day",
        "--reset",
        _SAVED | JSON,
        "saved:show_saved",
    ),
    Command(
        "stop",
        "stop the local host",
        "",
        {"--force": "even if editors are using it"},
        "host_commands:stop",
    ),
    Command(
        "logs", "show the local host's log", "-n 200 --follow", _LOGS, "host_commands:show_logs"
    ),
    Command("why", "explain why no suggestion appeared", "a.py", _WHY | JSON, "why:show_why"),
    Command(
        "doctor",
        "check everything, and say what to do",
        "--start",
        _DOCTOR | JSON,
        "doctor:show_doctor",
    ),
    Command(
        "setup",
        "install the model that helps most on this machine, after asking, and say what to do next",
        "--yes",
        _SETUP,
        "setup:set_up",
    ),
    Command(
        "models",
        "list, install and remove models, with what each holds on disk and in memory",
        "install offline-1.5b",
        _MODELS,
        "models:manage_models",
    ),
    Command(
        "tune",
        "find settings that are faster on this machine, by insertions from a git history",
        "src --minutes 5",
        _TUNE,
        "tune:tune",
    ),
    Command(
        "completions",
        "print what completes `foregram` itself in a shell, or its manual page",
        "bash",
        _COMPLETIONS,
        "completions:print_completions",
    ),
    Command(
        "uninstall",
        "remove the environment, models, state and caches, after asking",
        "--yes",
        {"--yes": "do not ask"},
        "uninstall:uninstall",
    ),
)
