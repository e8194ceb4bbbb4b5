"""The figures of runs of many people, as a table and as an object."""

import json
from io import StringIO

import pytest
from rich.console import Console

from engine.host.protocol import PROTOCOL_VERSION, Status
from tests.bench.simulated.load.crowd import CrowdRun
from tests.bench.simulated.load.host_requests import HostRequest, Outcome
from tests.bench.simulated.load.load_figures import LoadFigures, load_json, load_table

HOST = Status(PROTOCOL_VERSION, "1", "ready", 1, 1.0, model="tiny", device="cpu", dtype="int8")


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


def test_fairness_is_the_slowest_persons_median_over_the_median_persons():
    people = [[answered(wait, 1.0)] * 19 + [answered(5.0, 5.0)] for wait in (0.1, 0.2, 0.3)]
    assert figures(*people).slowest_over_median == pytest.approx(1.5)


def shown(*runs):
    page = StringIO()
    Console(file=page, width=120).print(load_table(runs, HOST))
    return " ".join(page.getvalue().split())


def test_the_table_says_what_was_measured_and_what_went_wrong():
    refused = HostRequest(0.0, is_ahead=False, outcome="refused", trouble="too_many")
    text = shown(figures([refused], [refused], late_s=[0.1]))
    assert "tiny int8 on cpu" in text
    assert "to the first text, ms p50" in text
    assert "too_many: 2" in text
    assert "did not keep up" in text
    assert "did not keep up" not in shown(figures([answered(0.1, 0.2)], late_s=[0.001]))


def test_the_object_can_be_read_where_nothing_was_answered():
    failed = HostRequest(0.0, is_ahead=False, outcome="failed")
    found = json.loads(
        json.dumps(load_json([figures([answered(0.1, 0.2)]), figures([failed])], HOST, 7))
    )
    assert (found["seed"], found["model"], len(found["runs"])) == (7, "tiny", 2)
    assert found["runs"][0]["first_text_ms"]["p50"] == 100
    assert found["runs"][1]["answered_ms"]["p50"] is None
