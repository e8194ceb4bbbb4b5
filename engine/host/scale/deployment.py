"""The application that Ray is to run: replicas of a host, how many, and what each may have."""

import logging
import uuid
from typing import Any

import ray
from ray import serve
from ray.serve.config import AutoscalingConfig, RequestRouterConfig

from engine.errors import ForegramError
from engine.host.options import HostOptions
from engine.host.principals import Principals
from engine.host.scale.plan import ReplicaPlan, ScaleOptions, written
from engine.host.scale.replica import Replica

APP = "foregram"
LOGGING = {"log_level": "WARNING", "enable_access_log": False}
_REPLICAS = "Host"
_ROUTER = "engine.host.scale.router.WorkspaceRouter"
_DRAIN_S = 20.0
_HEALTH_PERIOD_S, _HEALTH_TIMEOUT_S = 2.0, 15.0
_TRIES = 3  # to load a model, before the reason is told
# A replica takes all: its quotas say what each principal may have there. Before Ray's proxies one
# who asks too much would have everybody wait.
_ONGOING, _QUEUED = 10_000, 10_000
_log = logging.getLogger("foregram.host")


class ClusterError(ForegramError):
    """Ray cannot be started or found, or cannot start the replicas."""

    code = "cluster_failed"


class Deployment:
    """The application as this process wants it; to run it again changes what is different."""

    def __init__(self, plan: ReplicaPlan, host: HostOptions, scale: ScaleOptions) -> None:
        """The application of this process: each has a version of its own, which replaces others."""
        self._plan, self._scale = plan, scale
        file = host.token_file
        self._principals = Principals.read(file) if file else Principals.of(host.token)
        self._version = uuid.uuid4().hex

    def run(self) -> None:
        """Deploy, and wait until it serves. Raises ClusterError."""
        try:
            serve.run(self._application(), name=APP, route_prefix="/")
        except (RuntimeError, ray.exceptions.RayError) as error:
            raise ClusterError(f"the replicas cannot be started: {error}") from error

    def replace(self) -> None:
        """Have Ray put new replicas in the place of the present ones, one after the other."""
        _log.info("the replicas are replaced")
        self._version = uuid.uuid4().hex
        self._change()

    def reload(self) -> None:
        """Read the token file again, and tell the replicas, which go on."""
        try:
            self._principals.reload()
            self._change()
        except ForegramError as error:
            _log.error("the tokens stay as they were: %s", error)
        else:
            _log.info("the token file was read again")

    def _change(self) -> None:
        """Deploy what is different; Ray goes on with that by itself."""
        target = serve.RunTarget(self._application(), name=APP, route_prefix="/")
        serve.run_many([target], wait_for_applications_running=False)

    def _application(self) -> Any:  # noqa: ANN401 - Ray's
        scale = self._scale
        amount: dict[str, Any] = {"num_replicas": scale.count.least}
        if not scale.count.is_fixed:
            amount = {"autoscaling_config": _autoscaling(scale)}
        return (
            serve.deployment(serve.ingress()(Replica))
            .options(
                name=_REPLICAS,
                version=self._version,
                _internal=True,  # else each run is a new version, and a new token a new replica
                user_config=written(self._principals.tokens),
                max_constructor_retry_count=_TRIES,
                max_ongoing_requests=_ONGOING,
                max_queued_requests=_QUEUED,
                backpressure_config={"status_code": 429, "retry_after_s": 1},
                health_check_period_s=_HEALTH_PERIOD_S,
                health_check_timeout_s=_HEALTH_TIMEOUT_S,
                graceful_shutdown_wait_loop_s=0.5,
                graceful_shutdown_timeout_s=_DRAIN_S,
                logging_config=LOGGING,
                request_router_config=RequestRouterConfig(
                    request_router_class=_ROUTER, request_router_kwargs={"load": scale.load}
                ),
                ray_actor_options=_resources(scale),
                **amount,
            )
            .bind(self._plan)
        )


def _autoscaling(scale: ScaleOptions) -> AutoscalingConfig:
    """By requests at a replica, running and waiting; quickly up, slowly down: a move costs prompts."""
    return AutoscalingConfig(
        min_replicas=scale.count.least,
        max_replicas=scale.count.most,
        target_ongoing_requests=scale.load,
        look_back_period_s=15.0,
        upscale_delay_s=5.0,
        downscale_delay_s=600.0,
    )


def processors(scale: ScaleOptions) -> int:
    """Of each replica: as told, or an even share of the cluster's, as far as one machine has them."""
    if scale.threads is not None:
        return scale.threads
    nodes = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
    return max(1, int(min(sum(nodes) // scale.count.most, max(nodes, default=1))))


def _resources(scale: ScaleOptions) -> dict[str, Any]:
    wants_gpu = scale.device != "cpu" and ray.cluster_resources().get("GPU", 0) > 0
    return {
        "num_cpus": processors(scale),
        "num_gpus": 1 if wants_gpu else 0,
        "runtime_env": {"env_vars": {"GOMP_SPINCOUNT": "20000", "RAY_USAGE_STATS_ENABLED": "0"}},
    }
