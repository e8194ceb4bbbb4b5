"""What the host counts."""

from engine import Cost, FinishReason
from engine.host.metrics import Metrics

COST = Cost(12, 4, 16, 100, 90, 50.0, 80.0, {"pool": 7, "model": 5}, queue_ms=15.0)


def lines(metrics: Metrics, **gauges: float) -> set[str]:
    return set(metrics.page(gauges).decode().splitlines())


def test_a_completion_is_counted_by_its_cost():
    metrics = Metrics()
    metrics.count(FinishReason.SUFFIX, COST)
    metrics.count(FinishReason.SUFFIX, COST)
    assert lines(metrics) >= {
        'foregram_requests_total{outcome="completed"} 2.0',
        "foregram_cancelled_total 0.0",
        "foregram_prompt_tokens_total 200.0",
        "foregram_reused_prompt_tokens_total 180.0",
        "foregram_tokens_total 24.0",
        "foregram_steps_total 8.0",
        'foregram_accepted_tokens_total{source="pool"} 14.0',
        'foregram_accepted_tokens_total{source="model"} 10.0',
        "foregram_queue_seconds_count 2.0",
        'foregram_queue_seconds_bucket{le="0.025"} 2.0',
        'foregram_prefill_seconds_bucket{le="0.05"} 2.0',
        'foregram_decode_seconds_bucket{le="0.05"} 0.0',
        "foregram_decode_seconds_sum 0.16",
    }


def test_what_its_client_ended_is_counted_as_cancelled():
    metrics = Metrics()
    metrics.count(FinishReason.CANCELLED, COST)
    assert lines(metrics) >= {
        'foregram_requests_total{outcome="cancelled"} 1.0',
        "foregram_cancelled_total 1.0",
    }


def test_gauges_show_what_is_so_now():
    metrics = Metrics()
    assert "foregram_running 1.0" in lines(metrics, running=1)
    assert "foregram_running 0.0" in lines(metrics, running=0)


def test_two_hosts_in_one_process_count_apart():
    one, other = Metrics(), Metrics()
    one.feedback.labels("accepted").inc()
    assert 'foregram_feedback_total{kind="accepted"} 1.0' in lines(one)
    assert not any(line.startswith("foregram_feedback_total{") for line in lines(other))
