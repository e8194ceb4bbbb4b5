"""From the command line's choice of a model to a loaded engine. Importing this loads torch."""

import argparse

from rich.console import Console

from engine.engine import Engine, EngineOptions
from lsp_server.cli.terminal import ProgressBars
from lsp_server.settings import Settings

_MEGABYTE = 1024 * 1024


def engine_options(arguments: argparse.Namespace, settings: Settings) -> EngineOptions:
    """What the command line says, or else the settings."""
    return EngineOptions(
        cache_folder=settings.cache_folder,
        model=arguments.model or settings.model,
        dtype=arguments.dtype or settings.dtype,
        device=arguments.device or settings.device,
        threads=settings.threads,
        kv_bytes=None if settings.kv_budget_mb is None else settings.kv_budget_mb * _MEGABYTE,
    )


def load_engine(arguments: argparse.Namespace, settings: Settings) -> Engine:
    """Load what is asked for, with its progress on stderr. Raises ForegramError."""
    progress = ProgressBars(Console(stderr=True))
    return Engine.load(engine_options(arguments, settings), progress)
