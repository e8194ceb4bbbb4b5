"""The names of replicas in their answers, and in one page of metrics of them all. No Ray."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from engine.host.auth import Application, Event, Receive, Send
from engine.host.protocol import REPLICA_HEADER

LABEL = "replica"


@dataclass(frozen=True, slots=True)
class NamedReplica:
    """Passes requests on to `app`, and its answers back with the replica's name."""

    app: Application
    name: str

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Handle one request, or another event, of the ASGI server."""
        header = (REPLICA_HEADER.encode(), self.name.encode())

        async def named(event: Event) -> None:
            if event["type"] == "http.response.start":
                # Another event: the application may send the same one again, in other answers.
                event = {**event, "headers": [*event.get("headers", ()), header]}
            await send(event)

        await self.app(scope, receive, named)


class _Joined(Collector):
    def __init__(self, pages: Mapping[str, bytes]) -> None:
        self._pages = pages

    def describe(self) -> Iterator[Metric]:
        """Nothing beforehand: the pages say it."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Each figure once, with the samples of all replicas."""
        joined: dict[str, Metric] = {}
        for replica, page in self._pages.items():
            for one in text_string_to_metric_families(page.decode()):
                family = joined.setdefault(one.name, Metric(one.name, one.documentation, one.type))
                for sample in one.samples:
                    labels = {**sample.labels, LABEL: replica}
                    family.samples.append(sample._replace(labels=labels))
        yield from joined.values()


def joined_pages(pages: Mapping[str, bytes]) -> bytes:
    """The samples of all pages, which are by replica, labelled with its name."""
    registry = CollectorRegistry()
    registry.register(_Joined(pages))
    return generate_latest(registry)
