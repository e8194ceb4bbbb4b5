"""The figures of a load test as a table and as an object."""

import io
import json

from rich.console import Console

from engine.host.protocol import PROTOCOL_VERSION, Status
from tests.bench.simulated.load.crowd import CrowdRun
from tests.bench.simulated.load.host_requests import HostRequest
from tests.bench.simulated.load.load_figures import LoadFigures
from tests.bench.simulated.load.load_report import load_json, load_table

HOST = Status(PROTOCOL_VERSION, "1", "ready", 1, 1.0, model="tiny", device="cpu", dtype="int8")


def run(num_people, outcome="answered", late_s=0.0, trouble="", memory_mb=(512.0,)):
    one = HostRequest(0.0, is_ahead=False, outcome=outcome, first_text_s=0.1, ended_s=0.25)
    one.tokens, one.trouble = 4, trouble
    return LoadFigures.of(CrowdRun(10.0, [[one]] * num_people, [late_s], memory_mb, 0.25))


def shown(*runs):
    page = io.StringIO()
    Console(file=page, width=120).print(load_table(runs, HOST))
    return page.getvalue()


def test_the_table_says_what_was_measured_and_what_went_wrong():
    text = " ".join(shown(run(2, "refused", late_s=0.1, trouble="too_many")).split())
    assert "tiny int8 on cpu" in text
    assert "to the first text, ms p50" in text
    assert "too_many: 2" in text
    assert "did not keep up" in text
    assert "did not keep up" not in " ".join(shown(run(2, late_s=0.001)).split())


def test_the_object_can_be_read_where_nothing_was_answered():
    found = json.loads(json.dumps(load_json([run(1), run(2, "failed")], HOST, 7)))
    assert (found["seed"], found["model"], len(found["runs"])) == (7, "tiny", 2)
    assert found["runs"][0]["first_text_ms"]["p50"] == 100
    assert found["runs"][1]["answered_ms"]["p50"] is None
