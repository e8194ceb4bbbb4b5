"""What a host's metrics page tells of its speed, of drafts and of users."""

import msgspec
import pytest

from engine.host.metrics import Metrics, joined_pages
from engine.request import Cost, FinishReason
from lsp_server.host.figures import Figures, counts_of

# 12 tokens in 4 steps of 16 rows, which are 12 drafts of which 8 were accepted.
COST = Cost(*(12, 4, 16, 100, 90, 50.0, 80.0, {"window": 1, "pool": 7, "model": 4}), queue_ms=15.0)


def page(*costs: Cost, one_row_ms: float = 25.0) -> bytes:
    metrics = Metrics()
    for cost in costs:
        metrics.count(FinishReason.SUFFIX, cost, one_row_ms)
        metrics.feedback.labels("accepted").inc()
    metrics.accepted_characters.inc(30)
    return metrics.page({"running": 1})


def counted(*costs: Cost, **how: float):
    return counts_of(page(*costs, **how).decode())


def test_speed_drafts_waits_and_users_are_those_of_all_completions():
    figures = msgspec.structs.asdict(Figures.of(counted(COST, COST)))
    nested = figures.pop("tokens_per_step_by_source"), figures.pop("feedback")
    assert nested == ({"pool": 1.75, "model": 1, "window": 0.25}, {"accepted": 2})
    assert figures == pytest.approx(
        {
            "completions": 2,
            "tokens": 24,
            "tokens_per_second": 150,
            "plain_tokens_per_second": 40,
            "tokens_per_step": 3,
            "draft_acceptance": 2 / 3,
            "queue_ms": 15,
            "prefill_ms": 50,
            "accepted_characters": 30,
        }
    )


def test_the_source_of_most_tokens_stands_first():
    assert [*Figures.of(counted(COST)).tokens_per_step_by_source] == ["pool", "model", "window"]


def test_between_two_looks_only_what_came_meanwhile_counts():
    slower = Cost(*(4, 4, 4, 100, 90, 20.0, 200.0, {"model": 4}), queue_ms=1.0)
    meanwhile = Figures.of(counted(COST, slower) - counted(COST))
    assert (meanwhile.completions, meanwhile.tokens) == (1, 4)
    assert meanwhile.tokens_per_second == pytest.approx(20)
    assert meanwhile.tokens_per_step_by_source == {"model": 1}
    assert meanwhile.draft_acceptance is None, "nothing was drafted"
    assert meanwhile.accepted_characters == 0


def test_a_host_that_knows_no_step_says_nothing_of_plain_decoding():
    figures = Figures.of(counted(COST, one_row_ms=0.0))
    assert figures.tokens_per_second == pytest.approx(150)
    assert figures.plain_tokens_per_second is None


def test_before_the_first_completion_there_are_no_figures():
    figures = Figures.of(counted())
    assert figures.tokens == 0
    assert figures.tokens_per_second is figures.tokens_per_step is figures.queue_ms is None


def test_replicas_are_added_up():
    joined = joined_pages({"one": page(COST), "two": page(COST)}).decode()
    together, alone = Figures.of(counts_of(joined)), Figures.of(counted(COST))
    assert together.tokens == 2 * alone.tokens
    assert together.plain_tokens_per_second == alone.plain_tokens_per_second
    assert together.tokens_per_step_by_source == alone.tokens_per_step_by_source


def test_one_completion_has_the_same_figures_by_its_cost():
    by_cost, by_page = Figures.of_one(COST), Figures.of(counted(COST, one_row_ms=0.0))
    assert by_cost.tokens_per_second == by_page.tokens_per_second
    assert by_cost.tokens_per_step_by_source == by_page.tokens_per_step_by_source
    assert by_cost.plain_tokens_per_second is None
