"""What the host counts, as Prometheus reads it. Labels hold no file names and no text."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from engine.request import CompletionResult, CompletionStats, FinishReason

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counters and histograms of one host, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter("requests", "Requests by outcome", "outcome")
        self._cancelled = self._counter(
            "cancelled", "Completions ended by their client, or for a newer one"
        )
        self.refusals = self._counter("refusals", "Requests that were not let in", "reason")
        for reason in ("wrong_token", "quota"):  # 0 is told, so that the first one is a change
            self.refusals.labels(reason)
        self.feedback = self._counter("feedback", "What became of completions", "kind")
        self.accepted_characters = self._counter(
            "accepted_characters", "Characters of completions that users took"
        )
        self._prompt = self._counter("prompt_tokens", "Tokens of prompts")
        self._reused = self._counter("reused_prompt_tokens", "Of these, found in the KV cache")
        self._tokens = self._counter("tokens", "Generated tokens")
        self._steps = self._counter("steps", "Forward passes of decoding")
        self._accepted = self._counter("accepted_tokens", "Tokens by who proposed them", "source")
        self._queue = self._histogram("queue_seconds", "Time before a completion began")
        self._prefill = self._histogram("prefill_seconds", "Time to read a prompt")
        self._decode = self._histogram("decode_seconds", "Time to write a completion")
        self._gauges: dict[str, Gauge] = {}
        self._llama = LlamaMetrics()
        self._registry.register(self._llama)

    def count(self, result: CompletionResult, queue_ms: float) -> None:
        """Count a completion that ran."""
        stats = result.stats
        is_cancelled = result.finish_reason is FinishReason.CANCELLED
        self.count_request("cancelled" if is_cancelled else "completed")
        self._prompt.inc(stats.prompt_tokens)
        self._reused.inc(stats.reused_tokens)
        self._tokens.inc(stats.tokens)
        self._steps.inc(stats.steps)
        for source, tokens in stats.accepted_by_source.items():
            self._accepted.labels(source).inc(tokens)
        self._queue.observe(queue_ms / 1000)
        self._prefill.observe(stats.prefill_ms / 1000)
        self._decode.observe(stats.decode_ms / 1000)
        self._llama.count(stats)

    def count_prefill(self, result: CompletionResult) -> None:
        """Count a prompt that was read for later."""
        self.count_request("prefilled")
        self._llama.count(result.stats)

    def count_request(self, outcome: str) -> None:
        """Count a request by what became of it."""
        self._requests.labels(outcome).inc()
        if outcome == "cancelled":
            self._cancelled.inc()

    def page(self, gauges: dict[str, float]) -> bytes:
        """Return the page, with the present values of `gauges`."""
        for name, value in gauges.items():
            if name not in self._gauges:
                self._gauges[name] = Gauge(f"foregram_{name}", "Now", registry=self._registry)
            self._gauges[name].set(value)
        self._llama.num_running = gauges.get("running", 0)
        self._llama.num_waiting = gauges.get("waiting", 0)
        return generate_latest(self._registry)

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"foregram_{name}", what, labels, registry=self._registry)

    def _histogram(self, name: str, what: str) -> Histogram:
        return Histogram(f"foregram_{name}", what, registry=self._registry, buckets=_SECONDS)


@dataclass(slots=True)
class _Totals:
    """Since the start."""

    prompt_tokens: int = 0  # that were read, not those found in the cache
    prompt_s: float = 0.0
    tokens: int = 0
    tokens_s: float = 0.0
    drafted: int = 0
    accepted: int = 0
    longest: int = 0  # prompt and completion


@dataclass(slots=True, eq=False)
class LlamaMetrics(Collector):
    """Figures under the names of llama.cpp's server, so that its dashboards show this host, too.

    Only those that mean the same there and here (llama.cpp, `tools/server/README.md`). Left out are
    `n_decode_total` and `n_busy_slots_per_decode`, as a step here is one of a completion, not one of
    a batch, and `spec_decode_num_drafts_total` and its figures by position, which nobody counts
    here. The two averages are of the time since the page was last read.
    """

    num_running: float = 0
    num_waiting: float = 0
    _totals: _Totals = field(default_factory=_Totals)
    _last: _Totals = field(default_factory=_Totals)

    def count(self, stats: CompletionStats) -> None:
        """Count what a completion cost, or what it cost to read its prompt alone."""
        totals = self._totals
        totals.prompt_tokens += stats.prompt_tokens - stats.reused_tokens
        totals.prompt_s += stats.prefill_ms / 1000
        totals.tokens += stats.tokens
        totals.tokens_s += stats.decode_ms / 1000
        totals.drafted += stats.rows - stats.steps  # the other rows are the tokens drafted upon
        totals.accepted += stats.tokens - stats.accepted_by_source.get("model", 0)
        totals.longest = max(totals.longest, stats.prompt_tokens + stats.tokens)

    def collect(self) -> Iterator[Metric]:
        """Say what was counted, as Prometheus wants it."""
        now, last = self._totals, self._last
        self._last = replace(now)
        read = _rate(now.prompt_tokens - last.prompt_tokens, now.prompt_s - last.prompt_s)
        written = _rate(now.tokens - last.tokens, now.tokens_s - last.tokens_s)
        for name, what, value in (
            ("prompt_tokens", "Number of prompt tokens processed.", now.prompt_tokens),
            ("prompt_seconds", "Prompt process time", now.prompt_s),
            ("tokens_predicted", "Number of generation tokens processed.", now.tokens),
            ("tokens_predicted_seconds", "Predict process time", now.tokens_s),
            ("spec_decode_num_draft_tokens", "Draft tokens generated", now.drafted),
            ("spec_decode_num_accepted_tokens", "Draft tokens accepted", now.accepted),
        ):
            yield CounterMetricFamily(f"llamacpp:{name}", what, value=value)
        for name, what, value in (
            ("n_tokens_max", "Largest observed n_tokens.", now.longest),
            ("prompt_tokens_seconds", "Average prompt throughput in tokens/s.", read),
            ("predicted_tokens_seconds", "Average generation throughput in tokens/s.", written),
            ("requests_processing", "Number of requests processing.", self.num_running),
            ("requests_deferred", "Number of requests deferred.", self.num_waiting),
        ):
            yield GaugeMetricFamily(f"llamacpp:{name}", what, value=value)


def _rate(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0
