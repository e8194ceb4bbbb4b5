"""From the command line's choice of a model to a loaded engine. Importing this loads torch."""

import argparse
from dataclasses import replace
from typing import Any

from engine import loader
from engine.engine import Engine
from engine.loader import EngineOptions
from engine.progress import Progress
from lsp_server.settings import Settings

_MEGABYTE = 1024 * 1024


def load_engine(arguments: argparse.Namespace, settings: Settings, progress: Progress) -> Engine:
    """Load what the command line asks for, or else the settings. Raises ForegramError."""
    return loader.load_engine(engine_options(arguments, settings), progress)


def engine_options(arguments: argparse.Namespace, settings: Settings) -> EngineOptions:
    """What the options say that a command has, or else the settings.

    The length of prompts is for the commands that have an option for it.
    """
    given = vars(arguments)

    def chosen(name: str) -> Any:  # noqa: ANN401 - as the field of that name
        return given.get(name) or getattr(settings, name)

    kv_budget_mb = chosen("kv_budget_mb")
    options = EngineOptions(
        cache_folder=chosen("cache_folder"),
        model=chosen("model"),
        dtype=chosen("dtype"),
        device=chosen("device"),
        threads=chosen("threads"),
        kv_bytes=None if kv_budget_mb is None else kv_budget_mb * _MEGABYTE,
    )
    if "prompt_tokens" in given:
        return replace(options, prompt_tokens=chosen("prompt_tokens"))
    return options
