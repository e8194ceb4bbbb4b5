"""What replicas are made of, how many there are, and the way to Ray, which is an extra.

A plan is pickled, and unpickled on the machine of its replica.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Self

from engine.completer import ServedEngine
from engine.errors import ConfigurationError
from engine.host.compat.apis import NONE
from engine.host.options import HostOptions
from engine.host.principals import Principals
from engine.host.runtime import new_secret
from engine.progress import Progress

MOST_REPLICAS = 1000
LOAD = 8  # requests at a replica that autoscaling aims at
_COUNT = re.compile(r"([1-9][0-9]{0,3})(?:-([1-9][0-9]{0,3}))?")
_ENTRY = "engine.host.scale.cluster:serve_replicas"


@dataclass(frozen=True, slots=True)
class ReplicaCount:
    """As many as the load wants, between two bounds."""

    least: int
    most: int

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most <= MOST_REPLICAS:
            raise ConfigurationError(
                f"{self.least} to {self.most} replicas is no range from 1 to {MOST_REPLICAS:,}"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `N` or `MIN-MAX`. Raises ConfigurationError."""
        found = _COUNT.fullmatch(text)
        if found is None:
            raise ConfigurationError(f"--replicas is a number or a range like 2-8, not {text!r}")
        least, most = found.groups()
        return cls(int(least), int(most or least))


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    """What Ray Serve is told."""

    count: ReplicaCount
    load: int = LOAD
    cluster: str | None = None  # Ray's address, or `auto`; None: Ray is started on this machine
    device: str = "auto"
    threads: int | None = None  # processors of a replica; None: an even share


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    """How a replica loads its engine, and how it answers."""

    load: Callable[[Progress], ServedEngine]
    requested_model: str
    principals: Principals  # of a file: each replica reads it by itself
    quotas: tuple[str, ...] = ()  # as NAME=VALUE; of each replica
    apis: str = NONE
    is_loopback: bool = False  # it serves programs of this machine alone, by its name
    is_debugging: bool = False


def start_replicas(plan: ReplicaPlan, host: HostOptions, scale: ScaleOptions) -> None:
    """Serve until SIGTERM. Raises ConfigurationError where Ray Serve is not installed."""
    # Ray reads these when it is imported. It reports to nobody; an own one obeys nobody else.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if scale.cluster is None:
        os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - or others go first
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # or .1 stands for all addresses
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = new_secret()
        # A replica that is slow for a moment keeps its sessions.
        os.environ["RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S"] = "1"
    try:
        serve: Callable[[ReplicaPlan, HostOptions, ScaleOptions], None] = resolve_name(_ENTRY)
    except ImportError as error:
        raise ConfigurationError(
            "--replicas needs Ray Serve, which is an extra: pip install 'foregram[scale]' "
            f"({error})"
        ) from error
    serve(plan, host, scale)
