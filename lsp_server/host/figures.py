"""What a host's metrics tell of its speed and its users, since its start or between two looks."""

from collections import Counter
from typing import Self

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from engine.host.metrics import Metrics
from engine.request import Cost, FinishReason

Counts = Counter[tuple[str, str]]  # by a sample's name without `foregram_`, and by its label


def counts_of(page: str) -> Counts:
    """Read a metrics page; replicas are added up. Raises ValueError for another text."""
    counts = Counts()
    for family in text_string_to_metric_families(page):
        for one in family.samples:
            label = next((value for name, value in one.labels.items() if name != "replica"), "")
            counts[one.name.removeprefix("foregram_"), label] += one.value  # type: ignore[assignment]  # typed for whole numbers
    return counts


class Figures(msgspec.Struct, frozen=True):
    """Speed, drafts, waiting and feedback. None: nothing was written, or the host does not know."""

    completions: int
    tokens: int
    tokens_per_second: float | None
    plain_tokens_per_second: float | None  # one token a step, as long as such a step takes there
    tokens_per_step: float | None
    tokens_per_step_by_source: dict[str, float]
    draft_acceptance: float | None  # share of the drafted tokens
    queue_ms: float | None
    prefill_ms: float | None
    feedback: dict[str, int]
    accepted_characters: int

    @classmethod
    def of(cls, counts: Counts) -> Self:
        """Return the figures of a page, or of the difference of two."""
        tokens, steps = counts["tokens_total", ""], counts["steps_total", ""]
        sources = _labelled(counts, "accepted_tokens_total")
        num_drafted = sum(sources.values()) - sources.get("model", 0)
        return cls(
            completions=int(counts["requests_total", "completed"]),
            tokens=int(tokens),
            tokens_per_second=_over(tokens, counts["decode_seconds_sum", ""]),
            plain_tokens_per_second=_over(tokens, counts["plain_decode_seconds_total", ""]),
            tokens_per_step=_over(tokens, steps),
            tokens_per_step_by_source={name: some / steps for name, some in sources.items()},
            draft_acceptance=_over(num_drafted, counts["rows_total", ""] - steps),
            queue_ms=_mean_ms(counts, "queue_seconds"),
            prefill_ms=_mean_ms(counts, "prefill_seconds"),
            feedback={
                name: int(some) for name, some in _labelled(counts, "feedback_total").items()
            },
            accepted_characters=int(counts["accepted_characters_total", ""]),
        )

    @classmethod
    def of_one(cls, cost: Cost) -> Self:
        """Return the figures of one completion."""
        metrics = Metrics()
        metrics.count(FinishReason.END_TOKEN, cost)
        return cls.of(counts_of(metrics.page({}).decode()))


def _labelled(counts: Counts, name: str) -> dict[str, float]:
    """Return a family's counts by label, the highest first, without those that are 0."""
    return {label: some for (one, label), some in counts.most_common() if one == name and some}


def _mean_ms(counts: Counts, name: str) -> float | None:
    mean_s = _over(counts[f"{name}_sum", ""], counts[f"{name}_count", ""])
    return mean_s and 1000 * mean_s


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None
