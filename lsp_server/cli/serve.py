"""`foregram serve`: the completion host, or several. Importing this loads neither torch nor Ray."""

import argparse
import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NoReturn

import msgspec

from engine.completer import ServedEngine
from engine.config import check_device_name
from engine.errors import ConfigurationError, DeviceLostError
from engine.host.compat.apis import DEFAULT
from engine.host.engine_thread import become_host, kept_for_good
from engine.host.loopback import is_loopback
from engine.host.options import HostOptions
from engine.host.quotas import QuotaKeeper
from engine.host.runtime import RuntimeFolder, new_secret
from engine.host.scale.plan import ReplicaPlan, replica_range, start_replicas
from engine.host.secret_file import read_token
from engine.host.server import HostServer
from engine.host.service import CompletionService
from engine.host.upstream.options import UpstreamOptions
from engine.model_names import AUTO_MODEL
from engine.progress import Progress
from lsp_server.cli.engine_arguments import load_host_engine
from lsp_server.settings import Settings

_ADDRESS, _PORT = "127.0.0.1", 8012  # llama.vim's default port
_REPLICA_LOAD = 8  # requests per replica that autoscaling aims at
_LEAST_TOKEN_LEN = 1  # characters; the upstream's owner has chosen it

LoadEngine = Callable[[Progress], ServedEngine]


def serve(arguments: argparse.Namespace, settings: Settings) -> int:
    """Run the host until it is stopped. Raises ForegramError if it cannot begin."""
    _set_up_log(is_debugging=settings.debug)
    check_device_name(arguments.device or settings.device)
    _check_scale(arguments)
    options = _host_options(arguments, settings)
    load, model = chosen_engine(arguments, settings)
    make = partial(_service, load, model, QuotaKeeper(arguments.quota), is_debugging=settings.debug)
    if arguments.replicas is not None:
        plan = ReplicaPlan(
            service=make,
            count=replica_range(arguments.replicas),
            target_load=arguments.replica_load or _REPLICA_LOAD,
            cluster=arguments.cluster,
            device=arguments.device or settings.device,
            threads=arguments.threads or settings.threads,
        )
        start_replicas(plan, options)
        return 0
    service = make()
    record = arguments.record
    folder = None
    if record is not None:
        folder = RuntimeFolder(record.parent)
        folder.record_path = record
    try:
        asyncio.run(HostServer(service, options, folder).serve())
    except DeviceLostError as error:
        # An ordinary exit may abort, because torch cannot free its memory on a lost device.
        _end_at_once(error.exit_status)
    if record is not None:  # an empty record means that this was no crash; file and lock stay
        with suppress(OSError):
            os.truncate(record, 0)
    if service.engine_thread.thread.is_alive():
        # A thread that still loads, or is stuck, would fail while Python shuts down.
        _end_at_once(0)
    return 0


def _set_up_log(*, is_debugging: bool) -> None:
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(message)s",
        level=logging.DEBUG if is_debugging else logging.WARNING,  # torch is talkative
    )
    # asyncio warns of writes to a client that has gone, which happens at each key.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    logging.getLogger("foregram").setLevel(logging.DEBUG if is_debugging else logging.INFO)


def _service(
    load: LoadEngine, model: str, limits: QuotaKeeper, *, is_debugging: bool
) -> CompletionService:
    _set_up_log(is_debugging=is_debugging)  # a replica has its own process
    become_host()
    return CompletionService(kept_for_good(load), model, limits)


def _end_at_once(status: int) -> NoReturn:
    logging.shutdown()
    os._exit(status)


def _host_options(arguments: argparse.Namespace, settings: Settings) -> HostOptions:
    if arguments.socket is not None and (arguments.host or arguments.port) is not None:
        raise ConfigurationError(
            "--socket goes without --host and --port: a host listens in one place"
        )
    address = arguments.host or _ADDRESS
    makes_token = arguments.token_file is None and arguments.socket is None and is_loopback(address)
    return HostOptions(
        socket=arguments.socket,
        address=address,
        port=_PORT if arguments.port is None else arguments.port,
        token=new_secret() if makes_token else None,
        token_file=arguments.token_file,
        token_folder=RuntimeFolder.open(settings.runtime_folder) if makes_token else None,
        tls_cert=arguments.tls_cert,
        tls_key=arguments.tls_key,
        idle_exit_s=arguments.idle_exit or None,  # 0 is never, as in the settings
        apis=",".join(arguments.api or [DEFAULT]),
        is_insecure=arguments.insecure,
    )


def _check_scale(arguments: argparse.Namespace) -> None:
    """Raise ConfigurationError for an option that does not fit the number of hosts."""
    several = arguments.replicas is not None
    why = "is for a host that is alone" if several else "goes with --replicas"
    for name in ("socket", "idle_exit", "record") if several else ("cluster", "replica_load"):
        if getattr(arguments, name) is not None:
            raise ConfigurationError(f"--{name.replace('_', '-')} {why}")


def chosen_engine(arguments: argparse.Namespace, settings: Settings) -> tuple[LoadEngine, str]:
    """Return a loader for the engine's thread, and the model's name. Raises ConfigurationError."""
    if arguments.backend == "openai":
        if arguments.edit_model is not None:
            raise ConfigurationError("--edit-model goes without --backend openai")
        options = _upstream_options(arguments, settings)
        return partial(_load_upstream, options), options.model_name or options.known_as
    if arguments.upstream is not None:
        raise ConfigurationError("--upstream goes with --backend openai")
    model = arguments.model or settings.model or AUTO_MODEL
    kept = msgspec.structs.replace(settings, token=None)  # secret, and the rest may be pickled
    return partial(load_host_engine, arguments, kept), model


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
