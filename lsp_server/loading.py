"""From the command line's choice of a model to a loaded engine. Importing this loads torch."""

import argparse

from rich.console import Console

from engine.engine import Engine, EngineOptions
from lsp_server.settings import Settings
from lsp_server.terminal import ProgressBars


def load_engine(arguments: argparse.Namespace, settings: Settings) -> Engine:
    """Load what `--model` and `--dtype` say, or else the environment. Raises ForegramError."""
    options = EngineOptions(
        cache_folder=settings.cache_folder,
        model=arguments.model or settings.model,
        dtype=arguments.dtype,
        threads=settings.threads,
    )
    return Engine.load(options, progress=ProgressBars(Console(stderr=True)))
