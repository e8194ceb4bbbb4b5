"""What replicas are made of, how many there are, and the way to Ray, which is an extra.

A plan is pickled, and unpickled on the machine that its replica is on.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Self

from engine.completer import ServedEngine
from engine.errors import ConfigurationError
from engine.host.options import HostOptions
from engine.host.principals import KnownToken
from engine.host.runtime import new_secret
from engine.progress import Progress

MOST_REPLICAS = 1000
LOAD = 8  # of a replica, as its load is aimed at
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

    @property
    def is_fixed(self) -> bool:
        """Whether there is nothing to scale."""
        return self.least == self.most


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    """What is told to Ray Serve."""

    count: ReplicaCount
    load: int = LOAD  # requests that run or wait at a replica, as autoscaling aims at
    cluster: str | None = None  # Ray's address, or `auto`; None: Ray is started on this machine
    device: str = "auto"
    threads: int | None = None  # processors of a replica; None: an even share

    def __post_init__(self) -> None:
        if self.load < 1:
            raise ConfigurationError(f"a load of {self.load} requests is not 1 or more")


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    """How its engine is loaded, and how it answers."""

    load: Callable[[Progress], ServedEngine]
    requested_model: str
    quotas: tuple[str, ...]  # as NAME=VALUE; of each replica
    apis: str
    is_loopback: bool  # it serves programs of this machine alone, by its name
    is_debugging: bool = False


def written(tokens: Iterable[KnownToken]) -> dict[str, Any]:
    """Tokens as Ray keeps them, in JSON: by their digests, from which nobody learns them."""
    return {"tokens": [[one.name, one.digest.hex(), one.line] for one in tokens]}


def read(config: Mapping[str, Any]) -> tuple[KnownToken, ...]:
    """What `written` has written."""
    return tuple(
        KnownToken(name, bytes.fromhex(digest), line) for name, digest, line in config["tokens"]
    )


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
