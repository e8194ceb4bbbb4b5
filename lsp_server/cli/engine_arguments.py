"""The options of commands that load a model: which one, where it runs, how it decodes."""

import argparse

from engine import CompletionRequest, Lookahead, Sampling, StopRules
from engine.model_names import ALIASES
from lsp_server.cli.command_parser import positive

DTYPES = ("int8", "float32", "bfloat16", "fp8", "int4")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Which model, held how, where."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        metavar="NAME",
        help=f"auto (what fits the GPU), an alias ({', '.join(ALIASES)}), a hub id, a local folder or "
        "a .gguf file; the embedded offline model by default",
    )
    group.add_argument(
        "--dtype",
        choices=DTYPES,
        help="the weights' format: int8 (default) or floats on a CPU; on a GPU bfloat16, fp8 or "
        "int4, by default as the model's file has them",
    )
    add_device(group)


def add_device(group: argparse._ActionsContainer) -> None:
    """Where it runs."""
    group.add_argument(
        "--device", help="where the model runs: auto (default), cpu, cuda, cuda:N, mps or xpu"
    )


def add_decoding(parser: argparse.ArgumentParser, max_tokens: int) -> None:
    """How text is made."""
    group = parser.add_argument_group("decoding")
    group.add_argument(
        "--max-tokens",
        metavar="N",
        type=positive,
        default=max_tokens,
        help=f"the longest completion; a line has about 10 tokens; {max_tokens} by default",
    )
    group.add_argument(
        "--layout",
        choices=("line", "psm"),
        default="line",
        help="where the last lines up to the cursor stand in the prompt: after the middle token, with "
        "token healing (line), or in the prefix (psm)",
    )
    group.add_argument(
        "--lookahead",
        metavar="MODE",
        default="auto",
        help="how far a step drafts ahead, which changes the speed, not the text: auto, off, a "
        "preset (coding, general, predictable, ...) or W,N,G",
    )
    group.add_argument(
        "--temperature",
        metavar="T",
        type=float,
        default=0.0,
        help="0 (default) takes the likeliest token; higher values, up to 10, vary more",
    )
    group.add_argument(
        "--seed",
        metavar="S",
        type=int,
        default=0,
        help="with a temperature, the same seed gives the same text in every run; 0 by default",
    )
    group.add_argument(
        "--min-confidence",
        metavar="P",
        type=float,
        default=0.0,
        help="the text stops where the model's confidence falls below P; 0, "
        "the default, never stops it",
    )


def decoding(arguments: argparse.Namespace) -> CompletionRequest:
    """A request that lacks only the text, of the options that say how it is made."""
    return CompletionRequest(
        prefix="",
        suffix="",
        layout=arguments.layout,
        lookahead=Lookahead.parse(arguments.lookahead),
        sampling=Sampling(temperature=arguments.temperature, seed=arguments.seed),
        stop=StopRules(max_tokens=arguments.max_tokens, min_confidence=arguments.min_confidence),
    )
