"""What replicas are made of, how many there are, and the way to `replicas`, which imports Ray."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from tempfile import TemporaryDirectory

from engine.errors import ConfigurationError
from engine.host.compat.apis import NONE
from engine.host.options import HostOptions
from engine.host.principals import Principals
from engine.host.runtime import new_secret
from engine.host.service import CompletionService

_MOST_REPLICAS = 1000


def replica_range(text: str) -> tuple[int, int]:
    """Read `N` or `MIN-MAX`: as many as the load wants between both. Raises ConfigurationError."""
    if found := re.fullmatch(r"([1-9][0-9]{0,3})(?:-([1-9][0-9]{0,3}))?", text):
        least, most = int(found[1]), int(found[2] or found[1])
        if least <= most <= _MOST_REPLICAS:
            return least, most
    what = f"a number or a range like 2-8, of at most {_MOST_REPLICAS:,}"
    raise ConfigurationError(f"--replicas is {what}, not {text!r}")


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    """How many replicas there are, what each serves, and whom it answers."""

    service: Callable[[], CompletionService]  # called in the process of the replica
    principals: Principals  # of a file: each replica reads it by itself
    apis: str = NONE
    is_loopback: bool = False  # it serves programs of this machine alone, by its name
    count: tuple[int, int] = (1, 1)  # the fewest and the most
    target_load: int = 8  # requests at a replica that autoscaling aims at
    cluster: str | None = None  # Ray's address, or `auto`; None: Ray is started on this machine
    device: str = "auto"
    threads: int | None = None  # processors of a replica; None: an even share


def start_replicas(plan: ReplicaPlan, host: HostOptions) -> None:
    """Serve until SIGTERM. Raises ConfigurationError where Ray Serve is not installed."""
    # Short, as Ray's sockets lie there; Ray opens what it makes to everybody.
    with TemporaryDirectory(prefix="fg-ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        # Ray reads these when it is imported. It reports to nobody.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        if plan.cluster is None:
            os.environ |= {
                "RAY_worker_niceness": "0",  # or others go first
                # Of the loopback address alone Ray opens no port to other machines.
                "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
                "RAY_TMPDIR": folder,
                "RAY_AUTH_MODE": "token",
                "RAY_AUTH_TOKEN": new_secret(),
                # A replica that is slow for a moment keeps its sessions.
                "RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S": "1",
            }
        try:
            serve = resolve_name("engine.host.scale.replicas:serve_replicas")
        except ImportError as error:
            raise ConfigurationError(
                "--replicas needs Ray Serve, which is an extra: pip install 'foregram[scale]' "
                f"({error})"
            ) from error
        serve(plan, host)
