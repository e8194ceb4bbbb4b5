"""Figures under the names of llama.cpp's server, so that its dashboards show this host, too.

Only those that mean the same there and here (llama.cpp, `tools/server/README.md`). Left out are
`n_decode_total` and `n_busy_slots_per_decode`, as a step here is one of a completion, not one of a
batch, and `spec_decode_num_drafts_total` and its figures by position, which nobody counts here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from engine.request import CompletionStats


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
    """Counts completions; the two averages are of the time since the page was last read."""

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
