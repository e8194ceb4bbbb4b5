"""Deploys the replicas on Ray, and stays for as long as they are wanted.

Without a cluster, Ray is started on this machine, behind a token that nobody else knows, and ends
with this process. It listens on the loopback address; Serve itself opens a port of each replica on
all addresses, behind the same token. On a cluster, the replicas go on when it ends, and
when it is started again they are replaced one after the other.
"""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

import ray
from ray import serve
from ray.serve.config import AutoscalingConfig, HTTPOptions, RequestRouterConfig

from engine.errors import ConfigurationError, ForegramError
from engine.host.listener import kept_token, port_listener
from engine.host.options import HostOptions
from engine.host.scale.plan import ReplicaPlan, ScaleOptions
from engine.host.scale.replica import Replica

_APP, _REPLICAS = "foregram", "Host"
_ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
_LOCAL = "127.0.0.1"  # of this address alone Ray opens no port to other machines
_STORE_BYTES = 100 * 1024 * 1024  # of Ray's object store, through which no completion goes
_LOGGING = {"log_level": "WARNING", "enable_access_log": False}
_REQUEST_S = 600.0  # after which Ray's proxy ends a request
_DRAIN_S = 20.0
_HEALTH_PERIOD_S, _HEALTH_TIMEOUT_S = 2.0, 15.0
_TOKENS_S = 10.0  # within which replicas read a token file
_TRIES = 3  # to load a model, before the reason is told
# A replica takes all: its quotas say what each principal may have there. If requests waited before
# Ray's proxies, one principal could have everybody wait.
_ONGOING = 10_000
_log = logging.getLogger("foregram.host")


class ClusterError(ForegramError):
    """Ray cannot be started or found, or cannot start the replicas."""

    code = "cluster_failed"


def serve_replicas(plan: ReplicaPlan, host: HostOptions, scale: ScaleOptions) -> None:
    """Deploy, and serve until SIGTERM or SIGINT. Raises ConfigurationError and ClusterError.

    SIGHUP has all replicas read the token file again, SIGUSR1 replaces them one after the other.
    """
    if host.port == 0:
        raise ConfigurationError("replicas need a port that is known beforehand")
    if scale.cluster is not None and host.token_file is None:
        raise ConfigurationError("replicas that go on without this process need a --token-file")
    signals: SimpleQueue[int] = SimpleQueue()
    _queue(signals, signal.SIGHUP, signal.SIGUSR1)
    with _ray(scale) as is_own:
        if is_own:
            port_listener(host).close()  # its message is better than Ray's
        _start(host, is_own=is_own)
        _deploy(plan, scale, is_waited_for=True)
        with kept_token(host, host.address, host.port):
            _log.info("listening on %s:%s", host.address, host.port)
            _queue(signals, signal.SIGTERM, signal.SIGINT)
            while (number := signals.get()) in (signal.SIGHUP, signal.SIGUSR1):
                _change(number, plan, scale)
        if not is_own:
            _log.info("the replicas go on; `serve.shutdown()` of Ray ends them")


def _queue(signals: SimpleQueue[int], *numbers: signal.Signals) -> None:
    for one in numbers:
        signal.signal(one, lambda number, _: signals.put(number))


def _change(number: int, plan: ReplicaPlan, scale: ScaleOptions) -> None:
    try:
        if number == signal.SIGUSR1:
            _log.info("the replicas are replaced")
            _deploy(plan, scale, is_waited_for=False)
            return
        plan.principals.reload()  # what is wrong with it is told here
        handle = serve.get_app_handle(_APP)
        handle.broadcast("reload_tokens").results(timeout_s=_TOKENS_S)
        _log.info("the token file was read again")
    except Exception as error:  # noqa: BLE001 - whatever Ray meets, the replicas go on
        _log.error("nothing was changed: %s", error)


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
            ray.init(**options, logging_level=logging.WARNING, namespace=_APP)
        except (RuntimeError, ConnectionError, ValueError) as error:
            raise ClusterError(f"Ray is not there: {error}") from error
        try:
            nodes = [node["NodeManagerAddress"] for node in ray.nodes()]
            if scale.cluster is None and nodes != [_LOCAL]:
                raise ClusterError(f"Ray listens on {nodes}, where it was told {_LOCAL} alone")
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
        logging_config=_LOGGING,
    )


def _deploy(plan: ReplicaPlan, scale: ScaleOptions, *, is_waited_for: bool) -> None:
    """Have Ray run the replicas, in the place of those that run. Raises ClusterError."""
    count = scale.count
    deployment = serve.deployment(serve.ingress()(Replica)).options(
        name=_REPLICAS,
        # Quickly up, slowly down: a session that moves needs its prompts read again.
        autoscaling_config=AutoscalingConfig(
            min_replicas=count.least,
            max_replicas=count.most,
            target_ongoing_requests=scale.load,
            look_back_period_s=15.0,
            upscale_delay_s=5.0,
            downscale_delay_s=600.0,
        ),
        max_constructor_retry_count=_TRIES,
        max_ongoing_requests=_ONGOING,
        health_check_period_s=_HEALTH_PERIOD_S,
        health_check_timeout_s=_HEALTH_TIMEOUT_S,
        graceful_shutdown_wait_loop_s=0.5,
        graceful_shutdown_timeout_s=_DRAIN_S,
        logging_config=_LOGGING,
        request_router_config=RequestRouterConfig(request_router_class=_ROUTER),
        ray_actor_options=_resources(scale),
    )
    target = serve.RunTarget(deployment.bind(plan), name=_APP, route_prefix="/")
    try:
        serve.run_many([target], wait_for_applications_running=is_waited_for)
    except (RuntimeError, ray.exceptions.RayError) as error:
        raise ClusterError(f"the replicas cannot be started: {error}") from error


def _resources(scale: ScaleOptions) -> dict[str, Any]:
    wants_gpu = scale.device != "cpu" and ray.cluster_resources().get("GPU", 0) > 0
    return {
        "num_cpus": _processors(scale),
        "num_gpus": 1 if wants_gpu else 0,
        "runtime_env": {"env_vars": {"GOMP_SPINCOUNT": "20000", "RAY_USAGE_STATS_ENABLED": "0"}},
    }


def _processors(scale: ScaleOptions) -> int:
    """Of each replica: as told, or an even share of the cluster's, as far as one machine has them."""
    if scale.threads is not None:
        return scale.threads
    nodes = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
    return max(1, int(min(sum(nodes) // scale.count.most, max(nodes, default=1))))
