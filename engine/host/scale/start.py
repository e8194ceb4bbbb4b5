"""The way to Ray, which only who wants replicas has installed, and what Ray is told before."""

import os
from collections.abc import Callable
from pkgutil import resolve_name

from engine.errors import ConfigurationError
from engine.host.options import HostOptions
from engine.host.runtime import new_secret
from engine.host.scale.plan import ReplicaPlan, ScaleOptions

_ENTRY = "engine.host.scale.cluster:serve_replicas"


def start_replicas(plan: ReplicaPlan, host: HostOptions, scale: ScaleOptions) -> None:
    """Serve until SIGTERM. Raises ConfigurationError where Ray Serve is not installed."""
    _prepare(scale)
    try:
        serve: Callable[[ReplicaPlan, HostOptions, ScaleOptions], None] = resolve_name(_ENTRY)
    except ImportError as error:
        raise ConfigurationError(
            "--replicas needs Ray Serve, which is an extra: pip install 'foregram[scale]' "
            f"({error})"
        ) from error
    serve(plan, host, scale)


def _prepare(scale: ScaleOptions) -> None:
    """Ray reads these when it is imported: it reports to nobody; an own one obeys nobody else."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if scale.cluster is None:
        os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - or others go first
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # or .1 stands for all addresses
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = new_secret()
