"""One page of Prometheus' text out of the pages of several replicas, each with its name."""

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

LABEL = "replica"


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
