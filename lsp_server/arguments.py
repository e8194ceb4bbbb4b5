"""The command line's words: commands, options and their defaults. It runs nothing."""

import argparse
import sys
from pathlib import Path

DTYPES = ("int8", "float32", "bfloat16", "fp8", "int4")
PEERS = ("llama-cpp", "transformers")
GPU_DTYPES = ("bfloat16", "fp8", "int4")


class _Version(argparse.Action):
    """Prints the version. To look it up takes 30 ms, which every start would pay otherwise."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print and exit."""
        from importlib.metadata import version

        sys.stdout.write(f"foregram {version('foregram')}\n")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """`args.command` and, for bench, `args.benchmark` say what was asked for."""
    parser = argparse.ArgumentParser(
        prog="foregram",
        description="Code completion from your own model, several tokens per step.",
        epilog="Settings: foregram.toml, FOREGRAM_* in the environment, options; see the README.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_complete(commands.add_parser("complete", help="complete the code at a cursor in a file"))
    bench = commands.add_parser("bench", help="measure drafting, decoding and quality")
    kinds = bench.add_subparsers(dest="benchmark", metavar="BENCHMARK", required=True)
    _add_replay(kinds.add_parser("replay", help="decode real insertions and edits, on and off"))
    _add_fim(kinds.add_parser("fim", help="score fill-in-the-middle tasks"))
    _add_forms(kinds.add_parser("forms", help="what weights of fewer bits cost in quality"))
    _add_pool(kinds.add_parser("pool", help="size and speed of the n-gram pool, without a model"))
    _add_gpu_bench(kinds.add_parser("gpu", help="every figure of an NVIDIA GPU in one run"))
    _add_lsp_bench(kinds.add_parser("lsp", help="what an editor sees of the language server"))
    _add_serve(commands.add_parser("serve", help="run the completion host"))
    _add_lsp(commands.add_parser("lsp", help="run the language server for an editor"))
    status = commands.add_parser("status", help="say what the host is doing")
    status.add_argument("--json", action="store_true", help="print one JSON object instead")
    commands.add_parser("stop", help="stop the local host")
    logs = commands.add_parser("logs", help="show what the local host printed")
    logs.add_argument("-n", "--lines", metavar="N", type=_positive, default=50)
    logs.add_argument("-f", "--follow", action="store_true", help="go on until Ctrl-C")
    why = commands.add_parser("why", help="say why the last empty answers were empty")
    why.add_argument("-n", "--lines", metavar="N", type=_positive, default=20)
    why.add_argument("--json", action="store_true", help="print one JSON list instead")
    doctor = commands.add_parser("doctor", help="examine everything, and say what to do")
    doctor.add_argument("--json", action="store_true", help="print one JSON list instead")
    doctor.add_argument("--start", action="store_true", help="start the host where there is none")
    return parser


def _add_lsp_bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="of the host that is started")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_gpu_bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sets", metavar="SET.jsonl", type=Path, nargs="*", help="replay sets, whose text is forced"
    )
    parser.add_argument(
        "--count",
        metavar="N",
        type=_positive,
        help="items of each kind in the sets; 30 by default, 8 with --quick",
    )
    parser.add_argument(
        "--shapes",
        metavar="NAMES",
        help="models of random weights, all of them by default: 0.5b,1.5b,7b,32b",
    )
    parser.add_argument("--quick", action="store_true", help="0.5b alone, and few of everything")
    parser.add_argument(
        "--tokenizer",
        metavar="DIR",
        type=Path,
        help="a folder with a tokenizer.json for the sets; the offline model's by default",
    )
    group = parser.add_argument_group("a real model")
    group.add_argument("--model", metavar="NAME", help="also measure this one in its own words")
    group.add_argument("--dtype", choices=GPU_DTYPES, help="how its weights are held")
    group.add_argument(
        "--chat", metavar="TASKS.jsonl.gz", type=Path, help="tasks whose problems it is asked about"
    )
    parser.add_argument(
        "--save",
        metavar="PREFIX",
        type=Path,
        default=Path("gpu-bench"),
        help="write PREFIX.json after every section, PREFIX.png at the end; gpu-bench by default",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_serve(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    place = parser.add_argument_group("place")
    place.add_argument("--socket", metavar="PATH", type=Path, help="listen on a unix socket")
    place.add_argument("--host", default="127.0.0.1", help="listen on this address")
    place.add_argument("--port", type=int, default=8012)
    place.add_argument(
        "--token-file",
        metavar="FILE",
        type=Path,
        help="clients must know the token in it; without one the host stays on this machine",
    )
    place.add_argument("--tls-cert", metavar="FILE", type=Path)
    place.add_argument("--tls-key", metavar="FILE", type=Path)
    parser.add_argument("--idle-exit", metavar="S", type=float, help="end after so long unused")
    parser.add_argument(
        "--record", metavar="FILE", type=Path, help="empty this file when the host ends well"
    )
    _add_resources(parser.add_argument_group("resources"))


def _add_resources(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--kv-budget", metavar="MB", type=_positive, help="memory for cached prompts"
    )
    group.add_argument("--threads", metavar="N", type=_positive, help="threads that torch uses")
    group.add_argument("--prompt-tokens", metavar="N", type=_positive, help="the longest prompt")
    group.add_argument(
        "--cache-folder", metavar="DIR", type=Path, help="converted models, learned acceptance"
    )


def _add_lsp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stdio", action="store_true", help="the default")
    parser.add_argument("--port", type=int, help="serve over TCP on this machine instead")
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
        help="other files that are open, most related first: their text feeds the drafts",
    )
    _add_model(parser)
    _add_decoding(parser, max_tokens=256)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.jsonl", type=Path, help="a replay set")
    parser.add_argument("--count", type=_positive, help="only the first COUNT items")
    parser.add_argument(
        "--oracle",
        action="store_true",
        help="score drafting alone: the target plays the model, no model runs",
    )
    parser.add_argument(
        "--oracle-forced",
        action="store_true",
        help="run the model's steps in full, but have it say the target",
    )
    _add_model(parser)
    _add_decoding(parser, max_tokens=64)
    parser.add_argument(
        "--no-stop-rules",
        dest="stop_rules",
        action="store_false",
        help="let end tokens and --max-tokens alone end a completion",
    )
    _add_report(parser)
    parser.add_argument(
        "--plot", metavar="FILE.png", type=Path, help="draw tokens per step and speed-up per item"
    )


def _add_fim(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.jsonl.gz", type=Path, help="a task set")
    parser.add_argument("--count", type=_positive, help="only COUNT tasks")
    parser.add_argument(
        "--mid-line", action="store_true", help="only tasks whose cursor stands inside a line"
    )
    _add_model(parser)
    _add_decoding(parser, max_tokens=128)
    _add_report(parser)


def _add_forms(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.jsonl", type=Path, help="a replay set")
    parser.add_argument("--count", type=_positive, help="only the first COUNT items")
    parser.add_argument("--model", metavar="NAME", help="the embedded offline model by default")
    _add_device(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_pool(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tokens", metavar="N", type=_positive, default=10_000_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        metavar="NAME",
        help="an alias (0.5b, 1.5b, 3b, ..., offline, offline-1.5b), a hub id, a local folder or "
        "a .gguf file; the embedded offline model by default",
    )
    group.add_argument(
        "--dtype",
        choices=DTYPES,
        help="how weights are held: int8 (default) or floats on a CPU; bfloat16 (default), fp8 or "
        "int4 on a GPU",
    )
    _add_device(group)


def _add_decoding(parser: argparse.ArgumentParser, max_tokens: int) -> None:
    group = parser.add_argument_group("decoding")
    group.add_argument("--max-tokens", metavar="N", type=int, default=max_tokens)
    group.add_argument(
        "--layout",
        choices=("line", "psm"),
        default="line",
        help="where the cursor's line stands in the prompt: after the middle token, with token "
        "healing (line), or in the prefix (psm)",
    )
    group.add_argument(
        "--lookahead",
        metavar="MODE",
        default="auto",
        help="auto, off, a preset (coding, general, predictable, ...) or W,N,G",
    )
    group.add_argument("--temperature", metavar="T", type=float, default=0.0, help="0: greedy")
    group.add_argument("--seed", metavar="S", type=int, default=0)


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument(
        "--compare",
        choices=PEERS,
        action="append",
        default=[],
        help="run a peer on the same weights and items, in the same run",
    )


def _add_device(group: argparse._ActionsContainer) -> None:
    group.add_argument("--device", help="where it runs: auto (default), cpu, cuda or cuda:N")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)
