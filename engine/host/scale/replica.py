"""One of several hosts: the application of `foregram serve`, held by an actor of Ray Serve.

Ray calls `check_health` now and then, and starts another where that raises or the process is gone.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from ray import serve

from engine.errors import ConfigurationError, ForegramError
from engine.host.app import Peers, create_app
from engine.host.auth import Application, AuthMiddleware, Event, Receive, Send
from engine.host.buffers import ClientId
from engine.host.compat.apis import EnabledApis
from engine.host.engine_thread import become_host, kept_for_good
from engine.host.figures import metrics_page
from engine.host.protocol import REPLICA_HEADER
from engine.host.quotas import QuotaKeeper
from engine.host.scale.plan import ReplicaPlan
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
        """Load the engine. Raises ForegramError; Ray routes nothing here before this returns."""
        logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
        level = logging.DEBUG if plan.is_debugging else logging.INFO
        logging.getLogger("foregram").setLevel(level)
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # as in `foregram serve`
        become_host()
        self._plan = plan
        limits = QuotaKeeper(plan.quotas)
        self._service = CompletionService(kept_for_good(plan.load), plan.requested_model, limits)
        self._service.engine_thread.start()
        while self._service.state == "loading":
            await asyncio.sleep(_LOADING_S)
        self.check_health()
        self._follow_tokens()  # they may have changed while the engine was loaded
        self._upkeep = asyncio.create_task(self._leave_silent())

    def __serve_build_asgi_app__(self) -> Application:
        """The application; Ray asks for it once the engine is loaded."""
        plan, service = self._plan, self._service
        apis = EnabledApis.named(plan.apis)
        app: Any = create_app(service, None, apis, _OtherReplicas())
        guarded = AuthMiddleware(
            *(app, plan.principals, plan.is_loopback, service.limits, apis),
            metrics=service.metrics,
        )
        return named(guarded, _own_name())

    def reload_tokens(self) -> None:
        """Read the token file again. Raises ConfigurationError; then what is known stays."""
        self._plan.principals.reload()
        self._service.clients.keep_only(self._plan.principals.every)

    def _follow_tokens(self) -> None:
        """A replica whose file is broken serves the tokens it knows, at first those of the plan."""
        try:
            if self._plan.principals.follow():
                self._service.clients.keep_only(self._plan.principals.every)
        except ConfigurationError as error:
            _log.error("the tokens stay as they were: %s", error)

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
            self._follow_tokens()
            await asyncio.to_thread(return_free_memory)


class _OtherReplicas(Peers):
    """The other replicas, by way of Ray; a call goes to all of them, this one included."""

    async def close(self, client: ClientId, uris: tuple[str, ...] | None) -> None:
        await self._results("close_client", client.principal, client.name, uris)

    async def metrics(self, own: bytes) -> bytes:
        found = await self._results("metrics")
        pages = dict(one for one in found if not isinstance(one, BaseException))
        return joined_pages(pages | {_own_name(): own})

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


def named(app: Application, name: str) -> Application:
    """`app`, whose answers say which replica gave them."""
    header = (REPLICA_HEADER.encode(), name.encode())

    async def named_app(scope: Event, receive: Receive, send: Send) -> None:
        async def named_send(event: Event) -> None:
            if event["type"] == "http.response.start":
                # Another event: the application may send the same one again, in other answers.
                event = {**event, "headers": [*event.get("headers", ()), header]}
            await send(event)

        await app(scope, receive, named_send)

    return named_app


class _Joined(Collector):
    def __init__(self, figures: Iterable[Metric]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        """Return what was given."""
        return self._figures


def joined_pages(pages: Mapping[str, bytes]) -> bytes:
    """The samples of all pages, which are by replica, labelled with its name."""
    joined: dict[str, Metric] = {}
    for replica, page in pages.items():
        for one in text_string_to_metric_families(page.decode()):
            family = joined.setdefault(one.name, Metric(one.name, one.documentation, one.type))
            for sample in one.samples:
                labels = {**sample.labels, "replica": replica}
                family.samples.append(sample._replace(labels=labels))
    return generate_latest(_Joined(joined.values()))
