"""Deploys the replicas on Ray, and stays for as long as they are wanted.

Without a cluster, Ray is started on this machine, behind a token that nobody else knows, and ends
with this process. It listens on the loopback address; Serve itself opens a port of each replica on
all addresses, behind the same token. On a cluster, the replicas go on when it ends, and
when it is started again they are replaced one after the other.
"""

import asyncio
import logging
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import ray
from ray import serve
from ray.serve.config import HTTPOptions

from engine.errors import ConfigurationError
from engine.host.listener import kept_token, port_listener
from engine.host.options import HostOptions
from engine.host.scale.deployment import APP, LOGGING, ClusterError, Deployment
from engine.host.scale.plan import ReplicaPlan, ScaleOptions

_LOCAL = "127.0.0.1"  # of this address alone Ray opens no port to other machines
_STORE_BYTES = 100 * 1024 * 1024  # of Ray's object store, through which no completion goes
_REQUEST_S = 600.0  # of any
_log = logging.getLogger("foregram.host")


def serve_replicas(plan: ReplicaPlan, host: HostOptions, scale: ScaleOptions) -> None:
    """Deploy, and serve until SIGTERM or SIGINT. Raises ConfigurationError and ClusterError."""
    if host.port == 0:
        raise ConfigurationError("replicas need a port that is known beforehand")
    if scale.cluster is not None and host.token_file is None:
        raise ConfigurationError("replicas that go on without this process need a --token-file")
    with _kept_signals(signal.SIGHUP, signal.SIGUSR1) as early, _ray(scale) as is_own:
        if is_own:
            port_listener(host).close()  # its message is better than Ray's
        _start(host, is_own=is_own)
        deployment = Deployment(plan, host, scale)
        deployment.run()
        with kept_token(host, host.address, host.port):
            _log.info("listening on %s:%s", host.address, host.port)
            asyncio.run(_until_ended(deployment, early))
            for one in (signal.SIGHUP, signal.SIGUSR1):  # asyncio has set them back
                signal.signal(one, signal.SIG_IGN)  # while Ray ends
        if not is_own:
            _log.info("the replicas go on; `serve.shutdown()` of Ray ends them")


@contextmanager
def _ray(scale: ScaleOptions) -> Iterator[bool]:
    """Ray, for as long as the block runs; yields whether it is this process's own."""
    # A short name: there are sockets below.
    with TemporaryDirectory(prefix="fg-ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        options: dict[str, Any] = {"address": scale.cluster}
        if scale.cluster is None:
            options = {
                "address": "local",
                "include_dashboard": False,
                "object_store_memory": _STORE_BYTES,
                "_node_ip_address": _LOCAL,
                "_temp_dir": f"{folder}/r",  # which Ray opens to everybody
            }
        try:
            ray.init(**options, logging_level=logging.WARNING, namespace=APP)
        except (RuntimeError, ConnectionError, ValueError) as error:
            raise ClusterError(f"Ray is not there: {error}") from error
        try:
            yield scale.cluster is None
            if scale.cluster is None:
                serve.shutdown()
        finally:
            ray.shutdown()


def _start(host: HostOptions, *, is_own: bool) -> None:
    """Have Ray listen, unless it does already: then its address is what it was."""
    serve.start(
        proxy_location="HeadOnly" if is_own else "EveryNode",
        http_options=HTTPOptions(
            host=host.address,
            port=host.port,
            request_timeout_s=_REQUEST_S,
            ssl_certfile=None if host.tls_cert is None else str(host.tls_cert.absolute()),
            ssl_keyfile=None if host.tls_key is None else str(host.tls_key.absolute()),
        ),
        logging_config=LOGGING,
    )


@contextmanager
def _kept_signals(*numbers: signal.Signals) -> Iterator[list[int]]:
    """Notes those that come while there is no event loop to act on them: they would end this."""
    came: list[int] = []
    former = {one: signal.signal(one, lambda number, _: came.append(number)) for one in numbers}
    try:
        yield came
    finally:
        for one, handler in former.items():
            signal.signal(one, handler)


async def _until_ended(deployment: Deployment, early: Sequence[int]) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGHUP, deployment.reload)
    loop.add_signal_handler(signal.SIGUSR1, deployment.replace)
    for one in set(early):
        signal.raise_signal(one)
    await ended.wait()
