"""One of several hosts: the application of `foregram serve`, held by an actor of Ray Serve.

Ray calls `check_health` now and then, and starts another where that raises or the process is gone;
`reconfigure` as soon as there is one, and with each change of the tokens.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from ray import serve

from engine.errors import ForegramError
from engine.host.app import Peers, create_app
from engine.host.auth import Application, AuthMiddleware
from engine.host.buffers import ClientId
from engine.host.compat.dialects import Spoken
from engine.host.engine_thread import become_host, kept_for_good
from engine.host.figures import metrics_page
from engine.host.principals import Principals
from engine.host.quotas import QuotaKeeper
from engine.host.scale.named_replica import NamedReplica, joined_pages
from engine.host.scale.plan import ReplicaPlan, read
from engine.host.service import CompletionService
from engine.memory import return_free_memory

_LOADING_S = 0.05
_UPKEEP_S = 5.0
_PEERS_S = 2.0  # a peer that takes longer is about to be gone
_log = logging.getLogger("foregram.host")


class ReplicaError(ForegramError):
    """A replica cannot serve, or cannot any more."""

    code = "replica_failed"


class Replica:
    """Its methods are called on one event loop."""

    async def __init__(self, plan: ReplicaPlan) -> None:  # type: ignore[misc] # Ray awaits it
        """Load the engine. Raises ReplicaError; Ray routes nothing here before this returns."""
        logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
        level = logging.DEBUG if plan.is_debugging else logging.INFO
        logging.getLogger("foregram").setLevel(level)
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # as in `foregram serve`
        become_host()
        self._plan = plan
        self._principals = Principals.unknown()
        limits = QuotaKeeper(plan.quotas)
        self._service = CompletionService(kept_for_good(plan.load), plan.requested_model, limits)
        self._service.engine_thread.start()
        while self._service.state == "loading":
            await asyncio.sleep(_LOADING_S)
        self.check_health()
        self._upkeep = asyncio.create_task(self._leave_silent())

    def __serve_build_asgi_app__(self) -> Application:
        """The application; Ray asks for it once the engine is loaded."""
        spoken = Spoken.named(self._plan.apis)
        app: Any = create_app(self._service, None, spoken.dialects, _Broadcast())
        guarded = AuthMiddleware(
            *(app, self._principals, self._plan.is_loopback, self._service.limits, spoken),
            metrics=self._service.metrics,
        )
        return NamedReplica(guarded, _own_name())

    def reconfigure(self, config: Mapping[str, Any]) -> None:
        """Let in whom `config` names, and nobody else."""
        self._principals.tokens = read(config)
        self._service.clients.keep_only(self._principals.every)

    def check_health(self) -> None:
        """Raises ReplicaError where another has to take the place of this one."""
        if self._service.state != "ready":
            problem = self._service.engine_thread.problem
            raise ReplicaError(problem.message if problem else self._service.state)

    def metrics(self) -> tuple[str, bytes]:
        """The name and the figures of this replica, for one that is asked for those of all."""
        return _own_name(), metrics_page(self._service)

    def close_client(self, principal: str, client: str, uris: tuple[str, ...] | None) -> None:
        """Forget what a client has left here, as another replica was told."""
        self._service.clients.leave(ClientId(principal, client), uris)

    async def __del__(self) -> None:
        """Ray ends the replica, and has waited for its requests."""
        if hasattr(self, "_upkeep"):
            self._upkeep.cancel()
            await self._service.engine_thread.stop()

    async def _leave_silent(self) -> None:
        while True:
            await asyncio.sleep(_UPKEEP_S)
            self._service.clients.leave_silent()
            await asyncio.to_thread(return_free_memory)


class _Broadcast(Peers):
    """The other replicas, by way of Ray; a call goes to all of them, this one included."""

    async def close(self, client: ClientId, uris: tuple[str, ...] | None) -> None:
        await self._results("close_client", client.principal, client.name, uris)

    async def metrics(self, own: bytes) -> bytes:
        pages = {_own_name(): own}
        for result in await self._results("metrics"):
            if not isinstance(result, BaseException):
                name, page = result
                pages[name] = page
        return joined_pages(pages)

    async def _results(self, method: str, *values: object) -> list[Any]:
        context = serve.get_replica_context()
        handle = serve.get_deployment_handle(context.deployment, context.app_name)
        try:
            answers = handle.broadcast(method, *values)
            return list(await answers.results_async(timeout_s=_PEERS_S, return_exceptions=True))
        except Exception as error:  # noqa: BLE001 - whatever Ray meets, this host is there
            _log.warning("other replicas do not answer: %s", type(error).__name__)
            return []


def _own_name() -> str:
    name: str = serve.get_replica_context().replica_tag
    return name
