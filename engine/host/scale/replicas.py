"""Replicas on Ray Serve, each a complete host. On a cluster they outlive this process.

Without one, Ray listens on loopback and Serve on all addresses; a secret token guards both.
"""

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from queue import SimpleQueue
from typing import Any

import ray
from ray import serve

from engine.errors import ConfigurationError, ForegramError
from engine.host.app import guarded_app
from engine.host.auth import Application
from engine.host.buffers import ClientId
from engine.host.compat.apis import EnabledApis
from engine.host.options import HostOptions
from engine.host.principals import Principals
from engine.host.scale.plan import ReplicaPlan
from engine.host.server import follow_tokens, keep_up, port_listener, published_token
from engine.host.service import CompletionService

_APP = "foregram"
_ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
# Completions do not use Ray's object store, so it is small (in bytes).
_OWN_RAY = {"address": "local", "include_dashboard": False, "object_store_memory": 100 * 2**20}
_LOGGING = {"log_level": "WARNING", "enable_access_log": False}
_log = logging.getLogger("foregram.host")


class ClusterError(ForegramError):
    """Ray cannot be started or found, or its replicas cannot serve."""

    code = "cluster_failed"


def serve_replicas(plan: ReplicaPlan, host: HostOptions) -> None:
    """Serve until SIGTERM or SIGINT; SIGUSR1 replaces the replicas. Raises ForegramError."""
    if host.port == 0:
        raise ConfigurationError("replicas need a port that is known beforehand")
    if plan.cluster is not None and host.token_file is None:
        raise ConfigurationError("replicas that go on without this process need a --token-file")
    principals = host.principals()
    deploy = partial(_deploy, plan, host, principals)
    wishes: SimpleQueue[int] = SimpleQueue()
    for one in (signal.SIGHUP, signal.SIGUSR1):
        signal.signal(one, lambda number, _: wishes.put(number))
    with suppress(KeyboardInterrupt), _ray(plan.cluster), ExitStack() as stack:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if plan.cluster is None:
            stack.callback(serve.shutdown)
            port_listener(host).close()  # its error message is clearer than Ray's
        cert, key = (path and str(path.absolute()) for path in (host.tls_cert, host.tls_key))
        http = {"host": host.address, "port": host.port, "ssl_certfile": cert, "ssl_keyfile": key}
        serve.start(  # if Ray already listens, its address stays
            proxy_location="EveryNode" if plan.cluster else "HeadOnly",
            http_options=http | {"request_timeout_s": 600.0},
            logging_config=_LOGGING,
        )
        deploy(is_waited_for=True)
        stack.enter_context(published_token(host, host.address, host.port))
        _log.info("listening on %s:%s", host.address, host.port)
        while number := wishes.get():
            try:
                if number == signal.SIGUSR1:
                    _log.info("the replicas are replaced")
                    deploy(is_waited_for=False)
                else:
                    principals.follow(is_told=True)
            except Exception as error:  # noqa: BLE001 - Ray's failure must not end the replicas
                _log.error("nothing was changed: %s", error)
    if plan.cluster is not None:
        _log.info("the replicas go on; `serve.shutdown()` of Ray ends them")


def _ray(cluster: str | None) -> AbstractContextManager[Any]:
    options: Any = {"address": cluster} if cluster else _OWN_RAY
    try:
        started = ray.init(**options, logging_level=logging.WARNING, namespace=_APP)
    except (RuntimeError, ConnectionError, ValueError) as error:
        raise ClusterError(f"Ray is not there: {error}") from error
    addresses = [node["NodeManagerAddress"] for node in ray.nodes()]
    if cluster is None and addresses != ["127.0.0.1"]:
        raise ClusterError(f"Ray listens on {addresses}, where it was told 127.0.0.1 alone")
    return started  # type: ignore[no-any-return] # Ray has no types


def _deploy(
    plan: ReplicaPlan, host: HostOptions, principals: Principals, *, is_waited_for: bool
) -> None:
    least, most = plan.count
    processors = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
    share = max(1, int(min(sum(processors) // most, max(processors, default=1))))
    has_gpu = plan.device != "cpu" and ray.cluster_resources().get("GPU", 0) > 0
    deployment = serve.deployment(serve.ingress()(Replica)).options(
        autoscaling_config={  # down slowly: a session that moves reads its prompts again
            "min_replicas": least,
            "max_replicas": most,
            "target_ongoing_requests": plan.target_load,
            "look_back_period_s": 15.0,
            "upscale_delay_s": 5.0,
        },
        max_constructor_retry_count=3,
        max_ongoing_requests=10_000,  # above any quota, so that the proxy queues nothing
        health_check_period_s=2.0,
        health_check_timeout_s=15.0,
        logging_config=_LOGGING,
        request_router_config={"request_router_class": _ROUTER},
        ray_actor_options={
            "num_cpus": plan.threads or share,
            "num_gpus": int(has_gpu),
            "runtime_env": {"env_vars": {"GOMP_SPINCOUNT": "20000"}},
        },
    )
    bound = deployment.bind(plan.service, principals, host.apis, host.is_this_users)
    target = serve.RunTarget(bound, name=_APP, route_prefix="/")
    try:
        serve.run_many([target], wait_for_applications_running=is_waited_for)
    except (RuntimeError, ray.exceptions.RayError) as error:
        raise ClusterError(f"the replicas cannot be started: {error}") from error


class Replica:
    """One host as a Ray actor. Its methods run on one event loop."""

    async def __init__(  # type: ignore[misc] # Ray awaits it
        self,
        make: Callable[[], CompletionService],
        principals: Principals,
        apis: str,
        is_loopback: bool,  # noqa: FBT001 - Ray's bind is positional
    ) -> None:
        """Load the engine; Ray routes nothing here before this returns. Raises ForegramError."""
        self._service, self._principals = make(), principals
        self._apis, self._is_loopback = EnabledApis.named(apis), is_loopback
        self._name: str = serve.get_replica_context().replica_tag
        self._service.engine_thread.start()
        while self._service.state == "loading":
            await asyncio.sleep(0.05)
        self.check_health()
        await follow_tokens(self._service, principals, is_told=True)  # it may have changed
        self._upkeep = asyncio.create_task(keep_up(self._service, principals))

    def __serve_build_asgi_app__(self) -> Application:
        """Build the application; Ray calls this after the engine is loaded."""
        return guarded_app(
            *(self._service, self._apis, self._principals),
            is_loopback=self._is_loopback,
            ask_all=_ask_all,
            replica=self._name,
        )

    def check_health(self) -> None:
        """Raise ClusterError if this replica has to be replaced."""
        if self._service.state != "ready":
            problem = self._service.engine_thread.problem
            raise ClusterError(problem.message if problem else self._service.state)

    def metrics(self) -> tuple[str, bytes]:
        """Return this replica's name and metrics, for a replica that joins all metrics."""
        return self._name, self._service.metrics.page(self._service.gauges())

    def close_client(self, principal: str, client: str, uris: tuple[str, ...] | None) -> None:
        """Forget buffers that a client closed at another replica."""
        self._service.clients.leave(ClientId(principal, client), uris)

    async def __del__(self) -> None:
        """Stop the engine, after Ray has waited for the replica's requests."""
        if hasattr(self, "_upkeep"):
            self._upkeep.cancel()
            await self._service.engine_thread.stop()


async def _ask_all(method: str, *values: object) -> list[Any]:
    try:
        context = serve.get_replica_context()
        handle = serve.get_deployment_handle(context.deployment, context.app_name)
        answers = handle.broadcast(method, *values)
        found = await answers.results_async(timeout_s=2.0, return_exceptions=True)
        return [one for one in found if not isinstance(one, BaseException)]
    except Exception as error:  # noqa: BLE001 - Ray's failure must not end this host
        _log.warning("other replicas do not answer: %s", type(error).__name__)
        return []
