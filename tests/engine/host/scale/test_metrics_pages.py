"""One page of Prometheus' text out of those of several replicas."""

from prometheus_client.parser import text_string_to_metric_families

from engine.host.metrics import Metrics
from engine.host.scale.metrics_pages import joined_pages


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
