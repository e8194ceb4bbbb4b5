"""The host's metrics for Prometheus. Labels hold no file names and no text."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    generate_latest,
)
from prometheus_client.parser import text_string_to_metric_families

from engine.request import Cost, FinishReason

_OUTCOMES = (FinishReason.CANCELLED, FinishReason.PREFILLED)
_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counters and histograms of one host, in a separate registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter("requests", "Requests by outcome", "outcome")
        self.refusals = self._counter("refusals", "Requests that were not let in", "reason")
        for reason in ("wrong_token", "quota"):  # exported as 0, so that the first is an increase
            self.refusals.labels(reason)
        self.feedback = self._counter("feedback", "What became of completions", "kind")
        self.accepted_characters = self._counter(
            "accepted_characters", "Characters of completions that users took"
        )
        self._prompt = self._counter("prompt_tokens", "Tokens of prompts")
        self._reused = self._counter("reused_prompt_tokens", "Of these, found in the KV cache")
        self._tokens = self._counter("tokens", "Generated tokens")
        self._steps = self._counter("steps", "Forward passes of decoding")
        self._rows = self._counter("rows", "Rows of these: a token each, and all drafts")
        self._accepted = self._counter("accepted_tokens", "Tokens by who proposed them", "source")
        self._plain = self._counter(
            "plain_decode_seconds", "What these tokens would have taken, one a step; 0 if unknown"
        )
        self._queue = self._histogram("queue_seconds", "Time before a completion began")
        self._prefill = self._histogram("prefill_seconds", "Time to read a prompt")
        self._decode = self._histogram("decode_seconds", "Time to write a completion")
        self._gauges: dict[str, Gauge] = {}

    def count(self, reason: FinishReason, cost: Cost, one_row_ms: float = 0.0) -> None:
        """Count a completion that ran, where a step without drafts takes `one_row_ms`."""
        self.count_request(reason if reason in _OUTCOMES else "completed")
        if reason is FinishReason.PREFILLED:
            return
        self._prompt.inc(cost.prompt_tokens)
        self._reused.inc(cost.reused_tokens)
        self._tokens.inc(cost.tokens)
        self._steps.inc(cost.steps)
        self._rows.inc(cost.rows)
        self._plain.inc(cost.tokens * one_row_ms / 1000)
        for source, tokens in cost.accepted_by_source.items():
            self._accepted.labels(source).inc(tokens)
        self._queue.observe(cost.queue_ms / 1000)
        self._prefill.observe(cost.prefill_ms / 1000)
        self._decode.observe(cost.decode_ms / 1000)

    def count_request(self, outcome: str) -> None:
        """Count a request by its outcome."""
        self._requests.labels(outcome).inc()

    def page(self, gauges: Mapping[str, float]) -> bytes:
        """Return the metrics page with the current values of `gauges`."""
        for name, value in gauges.items():
            if name not in self._gauges:
                self._gauges[name] = Gauge(f"foregram_{name}", "Now", registry=self._registry)
            self._gauges[name].set(value)
        return generate_latest(self._registry)

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"foregram_{name}", what, labels, registry=self._registry)

    def _histogram(self, name: str, what: str) -> Histogram:
        return Histogram(f"foregram_{name}", what, registry=self._registry, buckets=_SECONDS)


def joined_pages(pages: Mapping[str, bytes]) -> bytes:
    """Join the replicas' pages into one, with each sample labelled by its replica."""
    joined: dict[str, Metric] = {}
    for replica, page in pages.items():
        for one in text_string_to_metric_families(page.decode()):
            family = joined.setdefault(one.name, Metric(one.name, one.documentation, one.type))
            for sample in one.samples:
                family.add_sample(sample.name, {**sample.labels, "replica": replica}, sample.value)
    registry: Any = SimpleNamespace(collect=joined.values)
    return generate_latest(registry)
