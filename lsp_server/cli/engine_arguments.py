"""The options of commands that load a model. Importing this loads no torch; `load_engine` does."""

import argparse
from typing import TYPE_CHECKING

from engine.config import Lookahead, Sampling, StopRules
from engine.model_names import ALIASES, AUTO_MODEL, serves
from engine.progress import Progress
from engine.request import CompletionRequest
from lsp_server.cli.command_parser import Options
from lsp_server.settings import Settings

if TYPE_CHECKING:
    from engine.completer import ServedEngine
    from engine.engine import Engine

_MEGABYTE = 1024 * 1024  # bytes: `--kv-budget` counts in MiB
DEVICE = {"--device DEVICE": "where the model runs: auto (default), cpu, cuda, cuda:N, mps or xpu"}
MODEL = {
    "model": {
        "--model NAME": "auto (the default: what this machine runs well), an alias "
        f"({', '.join(ALIASES)}), a hub id, a local folder or a .gguf file",
        "--dtype int8|float32|bfloat16|fp8|int4": "the weights' format: int8 (default) or floats on a "
        "CPU; on a GPU bfloat16, fp8 or int4, by default as the model's file has them",
        **DEVICE,
    }
}
LOOKAHEAD: Options = {
    "--lookahead MODE =auto": "how far a step drafts ahead, which changes the speed, not the text: "
    "auto, off, a preset (coding, general, predictable, ...) or W,N,G"
}


def decoding_options(max_tokens: int) -> Options:
    """Return the options for decoding."""
    options: Options = {
        f"--max-tokens N ={max_tokens}": "the longest completion; a line has about 10 tokens; "
        "%(default)s by default",
        "--layout line|psm =line": "where the last lines up to the cursor stand in the prompt: after "
        "the middle token, with token healing (line, the default), or in the prefix (psm)",
        **LOOKAHEAD,
        "--temperature T =0": "0 (default) takes the likeliest token; higher values, up to 10, vary "
        "more",
        "--seed SEED =0": "with a temperature, the same seed gives the same text in every run; 0 by "
        "default",
        "--min-confidence P =0": "the text stops where the model's confidence falls below P; 0, the "
        "default, never stops it",
    }
    return {"decoding": options}


def decoding(arguments: argparse.Namespace) -> CompletionRequest:
    """Return a request with the decoding options; it lacks only the text."""
    return CompletionRequest(
        prefix="",
        suffix="",
        layout=arguments.layout,
        lookahead=Lookahead.parse(arguments.lookahead),
        sampling=Sampling(temperature=arguments.temperature, seed=arguments.seed),
        stop=StopRules(
            max_tokens=arguments.max_tokens,
            min_confidence=arguments.min_confidence,
            min_later_confidence=arguments.min_confidence,
        ),
    )


def load_host_engine(
    arguments: argparse.Namespace, settings: Settings, progress: Progress
) -> "ServedEngine":
    """Load a host's engine, or two if the next edits have another model. Raises ForegramError."""
    from engine.engine_pair import EnginePair

    engine = load_engine(arguments, settings, progress)
    edit_model = arguments.edit_model or settings.edit_model
    if edit_model is None:
        return engine
    model = arguments.model or settings.model or AUTO_MODEL
    if serves(edit_model, model, engine.info.model):
        return EnginePair(engine, engine)
    return EnginePair(engine, load_engine(arguments, settings, progress, edit_model))


def load_engine(
    arguments: argparse.Namespace,
    settings: Settings,
    progress: Progress,
    model: str | None = None,  # instead of the chosen one
) -> "Engine":
    """Load the engine of the command line, completed by the settings. Raises ForegramError."""
    from engine.loader import load_engine as load

    given = vars(arguments)
    names = ["cache_folder", "model", "dtype", "device", "threads"]
    if "prompt_tokens" in given:
        names.append("prompt_tokens")
    chosen = {name: given.get(name) or getattr(settings, name) for name in names}
    chosen["model"] = model or chosen["model"]
    kv_budget_mb = given.get("kv_budget") or settings.kv_budget_mb
    kv_bytes = kv_budget_mb and kv_budget_mb * _MEGABYTE
    return load(**chosen, kv_bytes=kv_bytes, progress=progress)
