"""What `foregram serve` has generate: a model that it loads itself, or an engine of others.

Importing this loads no torch, and neither does an engine of others.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from engine.errors import ConfigurationError
from engine.host.secret_file import read_token
from engine.host.served_engine import ServedEngine
from engine.host.upstream.options import UpstreamOptions
from engine.model_names import DEFAULT_MODEL
from engine.progress import Progress
from lsp_server.settings import Settings

_LEAST_TOKEN_LEN = 1  # whoever runs the upstream has chosen it


@dataclass(frozen=True, slots=True)
class Backend:
    """How the engine is loaded, on its own thread, and which model was asked for."""

    load: Callable[[Progress], ServedEngine]
    requested_model: str


def chosen_backend(arguments: argparse.Namespace, settings: Settings) -> Backend:
    """What the command line asks for, or else the settings. Raises ConfigurationError."""
    if arguments.backend == "openai":
        options = _upstream_options(arguments, settings)
        return Backend(partial(_load_upstream, options), options.model_name or options.known_as)
    if arguments.upstream is not None:
        raise ConfigurationError("--upstream goes with --backend openai")
    model = arguments.model or settings.model or DEFAULT_MODEL
    kept = msgspec.structs.replace(settings, token=None)  # it may be pickled, and is a secret
    return Backend(partial(_load_own, arguments, kept), model)


def _upstream_options(arguments: argparse.Namespace, settings: Settings) -> UpstreamOptions:
    if arguments.upstream is None:
        raise ConfigurationError(
            "--backend openai needs an engine to ask: name its address with --upstream"
        )
    if arguments.device not in (None, "auto", "cpu"):
        raise ConfigurationError(
            f"--device {arguments.device} does not go with --backend openai: the upstream chooses "
            "where its model runs"
        )
    path = arguments.upstream_token_file
    return UpstreamOptions(
        url=arguments.upstream,
        cache_folder=arguments.cache_folder or settings.cache_folder,
        model_name=arguments.upstream_model or "",
        known_as=arguments.model or "",
        token=read_token(path, "the upstream's token file", _LEAST_TOKEN_LEN) if path else "",
        ca_file=arguments.upstream_ca_file,
        is_insecure=arguments.upstream_insecure,
        prompt_tokens=arguments.prompt_tokens or settings.prompt_tokens,
        context=arguments.upstream_context,
    )


def _load_upstream(options: UpstreamOptions, progress: Progress) -> ServedEngine:
    # On the engine's thread: the client and the tokenizer take a moment to import.
    from engine.host.upstream.upstream_engine import UpstreamEngine

    return UpstreamEngine.load(options, progress)


def _load_own(
    arguments: argparse.Namespace, settings: Settings, progress: Progress
) -> ServedEngine:
    # On the engine's thread, so that the host answers before torch is there.
    from lsp_server.cli.engine_loading import load_engine

    return load_engine(arguments, settings, progress)
