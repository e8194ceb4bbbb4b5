"""Tabby's API: what is read, what is answered, what events count."""

import pytest

from engine.completer import EngineInfo
from engine.errors import InputError
from engine.host.compat.drop_in_api import TextRequest
from engine.host.compat.tabby import TABBY
from engine.request import Snippet
from tests.support.held_engine import HeldEngine
from tests.support.running_host import running_host
from tests.support.served_host import secret_file

APIS = "openai,tabby"
COMPLETIONS = "/v1/completions"
SEGMENTS = {"prefix": "def f():\n    ", "suffix": "\nf()\n", "filepath": "src/a.py"}
BODY = {"language": "python", "segments": SEGMENTS}


def read(body) -> TextRequest:
    model = EngineInfo("fake-1b", "cpu", "float32", context_len=4096)
    return TABBY.read(COMPLETIONS, body, model).request


def segments(**more):
    return BODY | {"segments": SEGMENTS | more}


def test_the_segments_are_the_text_around_the_cursor():
    request = read(BODY)
    assert (request.prefix, request.suffix) == (SEGMENTS["prefix"], SEGMENTS["suffix"])
    assert (request.path, request.max_tokens, request.temperature) == ("src/a.py", 64, 0.0)


@pytest.mark.parametrize("suffix", ["", None])
def test_nothing_behind_the_cursor_is_a_line_end(suffix):
    assert read(segments(suffix=suffix)).suffix == "\n"


def test_snippets_come_in_tabbys_order_and_under_paths():
    request = read(
        segments(
            relevant_snippets_from_recently_opened_files=[
                {"filepath": "d.py", "body": "opened", "score": 1.0}
            ],
            relevant_snippets_from_changed_files=[
                {"filepath": "c.py", "body": "changed", "score": 0.5}
            ],
            declarations=[{"filepath": "file:///usr/lib/b%20c.py", "body": "declared"}],
            clipboard="secret",
            edit_history={"original_code": "", "edits_diff": "", "current_version": ""},
        )
    )
    assert request.snippets == (
        Snippet("/usr/lib/b c.py", "declared"),
        Snippet("c.py", "changed"),
        Snippet("d.py", "opened"),
    )
    assert "secret" not in repr(request)


def test_what_is_not_served_is_refused_by_name():
    with pytest.raises(InputError, match="mode"):
        read(BODY | {"mode": "next_edit_suggestion"})
    for name, value in (("raw_prompt", "x"), ("disable_retrieval_augmented_code_completion", True)):
        with pytest.raises(InputError, match=name):
            read(BODY | {"debug_options": {name: value}})


async def test_an_answer_is_one_text_under_the_name_that_events_call_it(tmp_path):
    engine = HeldEngine()
    async with running_host(tmp_path, engine, apis=APIS) as host:
        answer = (await host.client.post(COMPLETIONS, json=BODY)).json()
        events = [
            {"type": "view", "view_id": "view-1", "choice_index": 0},
            {"type": "select", "view_id": "view-1", "choice_index": 0, "elapsed": 1234},
        ]
        for event in events:
            event["completion_id"] = answer["id"]
            response = await host.client.post("/v1/events", json=event)
            assert (response.status_code, response.content) == (200, b"")
        page = (await host.client.get("/metrics")).text
    assert answer["choices"] == [{"text": "one two three", "index": 0}]
    assert answer["id"].startswith("cmpl-")
    assert 'foregram_feedback_total{kind="shown"} 1.0' in page
    assert 'foregram_feedback_total{kind="accepted"} 1.0' in page
    assert "foregram_accepted_characters_total 13.0" in page


async def test_events_of_lines_and_of_unknown_completions_do_no_harm(tmp_path):
    async with running_host(tmp_path, HeldEngine(), apis=APIS) as host:
        answer = (await host.client.post(COMPLETIONS, json=BODY)).json()
        named = {"completion_id": answer["id"], "choice_index": 0}
        line = await host.client.post(
            "/v1/events?select_kind=line", json=named | {"type": "select"}
        )
        unknown = await host.client.post(
            "/v1/events", json={"type": "dismiss", "completion_id": "cmpl-gone", "choice_index": 0}
        )
        wrong = await host.client.post("/v1/events", json=named | {"type": "eaten"})
        page = (await host.client.get("/metrics")).text
    assert [one.status_code for one in (line, unknown, wrong)] == [200, 200, 400]
    assert 'foregram_feedback_total{kind="partly_accepted"} 1.0' in page
    assert "foregram_accepted_characters_total 0.0" in page


async def test_nobody_counts_for_another(tmp_path):
    ada, eve = "the token of ada, for tests", "the token of eve, for tests"
    file = secret_file(tmp_path / "tokens", f"ada:{ada}\neve:{eve}")
    engine = HeldEngine()
    async with running_host(tmp_path, engine, apis=APIS, token=ada, token_file=file) as host:
        answer = (await host.client.post(COMPLETIONS, json=BODY)).json()
        event = {"type": "select", "completion_id": answer["id"], "choice_index": 0}
        headers = {"authorization": f"Bearer {eve}"}
        response = await host.client.post("/v1/events", json=event, headers=headers)
        page = host.service.metrics.page({}).decode()
    assert response.status_code == 200
    assert "foregram_accepted_characters_total 0.0" in page


async def test_health_says_what_the_agent_asks_before_anything_else(tmp_path):
    async with running_host(tmp_path, HeldEngine(), apis=APIS) as host:
        for method in ("GET", "POST"):
            health = (await host.client.request(method, "/v1/health")).json()
            assert (health["status"], health["model"]) == ("ok", "fake-1b")
            assert health["models"]["completion"]["local"]["model_id"] == "fake-1b"
            assert health["version"]["git_describe"].startswith("v0.")
        setting = await host.client.get("/v1beta/server_setting")
    assert setting.json() == {"disable_client_side_telemetry": True}
