"""`foregram serve --replicas`: several hosts under one address. Importing this loads no Ray."""

import argparse

from engine.errors import ConfigurationError
from engine.host.options import HostOptions
from engine.host.scale.options import LOAD, ReplicaCount, ScaleOptions
from engine.host.scale.plan import ReplicaPlan
from engine.host.scale.start import start_replicas
from lsp_server.cli.backend import Backend
from lsp_server.settings import Settings


def wants_replicas(arguments: argparse.Namespace) -> bool:
    """Whether there are to be several hosts. Raises ConfigurationError where options do not fit."""
    if arguments.replicas is None:
        for name in ("cluster", "replica_load"):
            if getattr(arguments, name) is not None:
                raise ConfigurationError(f"--{name.replace('_', '-')} goes with --replicas")
        return False
    for name in ("socket", "idle_exit", "record"):
        if getattr(arguments, name) is not None:
            raise ConfigurationError(f"--{name.replace('_', '-')} is for a host that is alone")
    return True


def serve_replicas(
    arguments: argparse.Namespace, settings: Settings, host: HostOptions, backend: Backend
) -> None:
    """Serve until SIGTERM. Raises ForegramError."""
    scale = ScaleOptions(
        count=ReplicaCount.parse(arguments.replicas),
        load=LOAD if arguments.replica_load is None else arguments.replica_load,
        cluster=arguments.cluster,
        device=arguments.device or settings.device or "auto",
        threads=arguments.threads or settings.threads,
    )
    plan = ReplicaPlan(
        load=backend.load,
        requested_model=backend.requested_model,
        quotas=tuple(arguments.quotas),
        apis=host.apis.names,
        is_loopback=host.is_this_users,
        is_debugging=settings.debug,
    )
    start_replicas(plan, host, scale)
