"""The plan of replicas, and the entry to `replicas`, which imports Ray."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from tempfile import TemporaryDirectory

from engine.errors import ConfigurationError
from engine.host.options import HostOptions
from engine.host.runtime import new_secret
from engine.host.service import CompletionService
from engine.installation import install_command


def replica_range(text: str) -> tuple[int, int]:
    """Parse `N` or `MIN-MAX`, limits for autoscaling. Raises ConfigurationError."""
    if found := re.fullmatch(r"([1-9][0-9]{0,2})(?:-([1-9][0-9]{0,2}))?", text):
        least, most = int(found[1]), int(found[2] or found[1])
        if least <= most:
            return least, most
    what = "a number or a range like 2-8, below 1,000"
    raise ConfigurationError(f"--replicas is {what}, not {text!r}")


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    """How many replicas to run, and what each serves."""

    service: Callable[[], CompletionService]  # called in each replica's process
    count: tuple[int, int] = (1, 1)  # minimum and maximum
    target_load: int = 8  # concurrent requests per replica that autoscaling aims at
    cluster: str | None = None  # Ray's address, or `auto`; None starts Ray on this machine
    device: str = "auto"
    threads: int | None = None  # processors per replica; None is an even share


def start_replicas(plan: ReplicaPlan, host: HostOptions) -> None:
    """Serve until SIGTERM. Raises ConfigurationError, also if Ray Serve is not installed."""
    # In /tmp, as paths of Ray's sockets must be short; private, as Ray's own files are not.
    with TemporaryDirectory(prefix="fg-ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # Ray reads it on import, like those below
        if plan.cluster is None:
            os.environ |= {
                "RAY_worker_niceness": "0",  # Ray's default yields to other processes
                "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # keeps Ray on loopback
                "RAY_TMPDIR": folder,
                "RAY_AUTH_MODE": "token",
                "RAY_AUTH_TOKEN": new_secret(),
                # Seconds: a replica that is briefly slow keeps its sessions.
                "RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S": "1",
            }
        try:
            serve = resolve_name("engine.host.scale.replicas:serve_replicas")
        except ImportError as error:
            raise ConfigurationError(
                f"--replicas needs Ray Serve, which is an extra ({error}); run "
                f"{install_command('scale')}"
            ) from error
        serve(plan, host)
