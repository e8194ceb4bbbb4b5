"""What the host counts."""

from prometheus_client.parser import text_string_to_metric_families

from engine.host.metrics import Metrics, joined_pages
from engine.request import Cost, FinishReason

COST = Cost(12, 4, 16, 100, 90, 50.0, 80.0, {"pool": 7, "model": 5}, queue_ms=15.0)


def lines(metrics: Metrics, **gauges: float) -> set[str]:
    return set(metrics.page(gauges).decode().splitlines())


def test_a_completion_is_counted_by_its_cost():
    metrics = Metrics()
    metrics.count(FinishReason.SUFFIX, COST, one_row_ms=25.0)
    metrics.count(FinishReason.SUFFIX, COST)
    assert lines(metrics) >= {
        'foregram_requests_total{outcome="completed"} 2.0',
        "foregram_prompt_tokens_total 200.0",
        "foregram_reused_prompt_tokens_total 180.0",
        "foregram_tokens_total 24.0",
        "foregram_steps_total 8.0",
        "foregram_rows_total 32.0",
        "foregram_plain_decode_seconds_total 0.3",
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
    assert 'foregram_requests_total{outcome="cancelled"} 1.0' in lines(metrics)


def test_gauges_show_what_is_so_now():
    metrics = Metrics()
    assert "foregram_running 1.0" in lines(metrics, running=1)
    assert "foregram_running 0.0" in lines(metrics, running=0)


def test_two_hosts_in_one_process_count_apart():
    one, other = Metrics(), Metrics()
    one.feedback.labels("accepted").inc()
    assert 'foregram_feedback_total{kind="accepted"} 1.0' in lines(one)
    assert not any(line.startswith("foregram_feedback_total{") for line in lines(other))


def page(running: float) -> bytes:
    metrics = Metrics()
    metrics.count_request("completed")
    return metrics.page({"running": running})


def test_each_figure_stands_once_for_each_replica():
    joined = joined_pages({"one": page(1), "two": page(2)}).decode()
    families = {one.name: one for one in text_string_to_metric_families(joined)}
    running = {one.labels["replica"]: one.value for one in families["foregram_running"].samples}
    assert running == {"one": 1, "two": 2}
    assert joined.count("# TYPE foregram_requests_total") == 1
    completed = 'foregram_requests_total{outcome="completed",replica="two"} 1.0'
    assert completed in joined.splitlines()


def test_nothing_is_lost_or_changed_of_a_page():
    alone = page(3).decode()
    joined = joined_pages({"one": alone.encode()}).decode()
    bare = joined.replace('replica="one",', "").replace(',replica="one"', "")
    assert bare.replace('{replica="one"}', "") == alone
