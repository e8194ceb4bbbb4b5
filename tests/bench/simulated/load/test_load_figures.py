"""What a run of many people amounts to."""

import math

import pytest

from tests.bench.simulated.load.crowd import CrowdRun
from tests.bench.simulated.load.host_requests import HostRequest, Outcome
from tests.bench.simulated.load.load_figures import LoadFigures


def answered(first_text_s, ended_s, tokens=4, *, is_ahead=False):
    return HostRequest(0.0, is_ahead, "answered", first_text_s, ended_s, tokens)


def figures(*people, seconds=2.0, late_s=(0.0,), memory_mb=(100.0, 300.0, 200.0)):
    return LoadFigures.of(CrowdRun(seconds, people, late_s, memory_mb, 0.25))


def test_requests_are_counted_by_what_became_of_them():
    ends: tuple[Outcome | None, ...] = ("superseded", "superseded", "refused", "failed", None)
    others = [HostRequest(0.0, is_ahead=False, outcome=outcome) for outcome in ends]
    found = figures([answered(0.1, 0.2), *others])
    assert (found.people, found.requests, found.answered, found.superseded) == (1, 6, 1, 2)
    assert (found.refused, found.failed, found.lost) == (1, 1, 1)


def test_what_is_computed_ahead_counts_for_tokens_alone():
    found = figures([answered(0.1, 0.2, tokens=6), answered(9.0, 9.0, tokens=8, is_ahead=True)])
    assert (found.requests, found.ahead) == (1, 1)
    assert found.first_text_ms.p99 == pytest.approx(100)
    assert found.tokens_per_s == 7


def test_a_text_counts_that_was_superseded_before_its_end():
    late = HostRequest(0.0, is_ahead=False, outcome="superseded", first_text_s=0.3, ended_s=0.4)
    found = figures([answered(0.1, 0.2), late])
    assert found.first_text_ms.p50 == pytest.approx(200)
    assert found.answered_ms.p50 == pytest.approx(200)


def test_fairness_is_the_slowest_persons_median_over_the_median_persons():
    people = [[answered(wait, 1.0)] * 19 + [answered(5.0, 5.0)] for wait in (0.1, 0.2, 0.3)]
    assert figures(*people).slowest_over_median == pytest.approx(1.5)


def test_who_asked_seldom_does_not_count_for_fairness():
    people = [[answered(0.1, 1.0)] * 20, [answered(5.0, 5.0)] * 19]
    assert figures(*people).slowest_over_median == 1


def test_a_person_without_a_text_has_no_median():
    alone = [HostRequest(0.0, is_ahead=False, outcome="superseded")] * 20
    assert figures([answered(0.1, 1.0)] * 20, alone).slowest_over_median == 1
    assert math.isnan(figures(alone).slowest_over_median)


def test_memory_is_the_most_that_was_seen():
    assert figures([]).memory_mb == 300
    assert math.isnan(figures([], memory_mb=()).memory_mb)


def test_a_process_that_is_late_says_so():
    assert not figures([], late_s=(0.001,) * 100).is_late
    assert figures([], late_s=(0.1,) * 100).is_late
    assert figures([], late_s=(0.1,) * 100).late_ms_p99 == pytest.approx(100)


def test_the_reasons_of_refusals_are_counted():
    refused = [
        HostRequest(0.0, is_ahead=False, outcome="refused", trouble="quota") for _ in range(2)
    ]
    assert figures(refused).troubles == {"quota": 2}
