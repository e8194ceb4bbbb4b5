"""The host over a real socket: completions, buffers, refusals, cancels, turns, its end."""

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
import pytest
from msgspec.structs import replace

from engine.config import StopRules
from engine.errors import ModelNotFoundError
from engine.host.app import guarded_app
from engine.host.auth import NATIVE_PATHS
from engine.host.compat.apis import EnabledApis
from engine.host.principals import Principals
from engine.host.protocol import (
    BufferSync,
    CloseRequest,
    Failed,
    Feedback,
    LineSplice,
    Problem,
    Status,
    SyncRequest,
)
from engine.host.quotas import QuotaKeeper
from engine.host.server import follow_tokens
from engine.host.service import CompletionJob, CompletionService
from engine.request import ClosedBuffers, CompletionRequest, Done, EditTask, FinishReason, Snippet
from tests.support.held_engine import HeldEngine
from tests.support.polling import eventually
from tests.support.running_host import ask, buffer, running_host
from tests.support.served_host import secret_file


class BreakingEngine(HeldEngine):
    """Breaks once."""

    is_broken = True

    def completing(self, request, **callbacks):
        if self.is_broken:
            self.is_broken = False
            raise RuntimeError(request.prefix)
        return super().completing(request, **callbacks)


async def begun(engine):
    """Wait until the engine works on one more completion."""
    await asyncio.to_thread(engine.began.acquire)


async def test_a_completion_streams_its_text_and_ends_with_what_it_cost(tmp_path):
    engine = HeldEngine()
    async with running_host(tmp_path, engine) as host:
        events = await host.answered(ask(buffer("x = 1", "y = "), line=1, character=4))
    *chunks, done = events  # those that follow each other quickly are one
    assert "".join(chunk.text for chunk in chunks) == done.text == "one two three"
    assert isinstance(events[-1], Done)
    assert events[-1].cost.reused_tokens == 90
    assert not events[-1].token_ids  # they stay in the host
    (request,) = engine.requests
    assert (request.prefix, request.suffix, request.path) == ("x = 1\ny = ", "", "a.py")
    assert engine.is_closed


async def test_an_overlay_serves_one_request_alone(tmp_path):
    engine = HeldEngine()
    overlay = (LineSplice(0, 1, ("x = total", "")),)
    async with running_host(tmp_path, engine) as host:
        await host.answered(ask(buffer("x"), line=1, overlay=overlay))
        await host.answered(ask(character=1))
    assert [request.prefix for request in engine.requests] == ["x = total\n", "x"]
    assert engine.requests[0].cache_key == engine.requests[1].cache_key


async def test_other_buffers_of_the_client_come_along_and_those_of_others_do_not(tmp_path):
    engine = HeldEngine()
    async with running_host(tmp_path, engine) as host:
        theirs = SyncRequest("two", "/", (buffer("secret", uri="file:///theirs.py"),))
        await host.post("/v1/buffers", theirs)
        await host.answered(ask(buffer("x"), buffer("y", uri="file:///b.py")))
        await host.post("/v1/buffers/close", CloseRequest("one", ("file:///b.py",)))
        await host.answered(ask())
    assert [[one.text for one in request.open_buffers] for request in engine.requests] == [
        ["y"],
        [],
    ]


async def test_the_client_hears_which_files_its_prompt_shows_and_others_how_many(tmp_path):
    engine = HeldEngine()
    private = BufferSync("file:///b.py", "plans.py", "python", 1, lines=("y",))
    snippet = Snippet("c.py", "def c(): ...\n")
    async with running_host(tmp_path, engine) as host:
        before = await host.status()
        *_, done = await host.answered(replace(ask(buffer("x"), private), repository=(snippet,)))
        page = (await host.client.get("/v1/status")).content
    assert engine.requests[0].repository == (snippet,)
    assert isinstance(done, Done)
    cost = done.cost
    assert (cost.neighbours, cost.neighbour_tokens, cost.num_open) == (("plans.py",), 10, 1)
    assert (cost.repository, cost.repository_tokens) == (("c.py",), 7)
    assert before.last_prompt is None
    use = msgspec.json.decode(page, type=Status).last_prompt
    assert use == cost.without_names
    assert (use.repository_tokens, use.repository) == (7, ("",))
    assert b"plans" not in page


async def test_more_of_the_repository_than_a_prompt_can_show_is_refused(tmp_path):
    many = tuple(Snippet(f"{n}.py", "x\n") for n in range(65))
    long = (Snippet("a.py", "x" * 20_000),)
    async with running_host(tmp_path, HeldEngine()) as host:
        for snippets in (many, long):
            asked = replace(ask(buffer("x")), repository=snippets)
            assert (await host.post("/v1/complete", asked)).status_code == 400


TWICE = msgspec.json.encode(ask(buffer("x"))).replace(
    b'"splices":[]', b'"splices":[{"start":0,"end":1,"lines":[]}]'
)


HUGE = b"1" + b"0" * 400  # no float holds it
LONG = b"1" * 5000  # Python neither reads nor prints it
PLAIN = msgspec.json.encode(ask(buffer("x")))
NEGATIVE = Feedback("one", "an id", "accepted", -1)


async def test_a_route_that_fails_says_so_and_logs_the_place_but_no_text(
    tmp_path, monkeypatch, caplog
):
    def fail(*_):
        raise RuntimeError("my text")

    monkeypatch.setattr("engine.host.buffers.ClientBuffers.sync", fail)
    async with running_host(tmp_path, HeldEngine()) as host:
        response = await host.post("/v1/buffers", SyncRequest("one", "/", (buffer("my text"),)))
        assert (await host.client.get("/v1/status")).status_code == 200
    assert response.status_code == 500
    assert msgspec.json.decode(response.content, type=Problem).code == "internal_error"
    assert "POST /v1/buffers failed: RuntimeError at " in caplog.text
    assert "test_app.py" in caplog.text
    assert "my text" not in response.text + caplog.text


async def test_every_route_of_the_native_protocol_asks_for_its_header():
    service = CompletionService(lambda _: HeldEngine())
    app: Any = guarded_app(service, EnabledApis(), Principals(), is_loopback=False).app
    assert {route.path for route in app.routes} == {*NATIVE_PATHS, "/health", "/metrics"}


@pytest.mark.parametrize("path", ["/docs", "/docs/swagger", "/docs/openapi.json", "/schema"])
async def test_there_are_no_pages_that_load_scripts_from_elsewhere(tmp_path, path):
    async with running_host(tmp_path, HeldEngine()) as host:
        response = await host.client.get(path)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"{", "truncated"),
        (b"[]", "object"),
        (TWICE, "with its lines, or with splices"),
        (b'{"client": 7}', "client"),
        (msgspec.json.encode(ask()).replace(b'"version":1', b'"version":"x"'), "version"),
        (msgspec.json.encode(ask()).replace(b'"layout"', b'"layuot"'), "layuot"),
        (msgspec.json.encode(ask(buffer("x"), lookahead="warp")), "warp"),
        (msgspec.json.encode(ask(line=-1)), "position.line"),
        (msgspec.json.encode(ask(character=-1)), "position.character"),
        (PLAIN.replace(b'"maxTokens":128', b'"maxTokens":-1'), "max_tokens -1"),
        (PLAIN.replace(b'"timeLimitMs":null', b'"timeLimitMs":-1'), "time_limit_ms -1"),
        (PLAIN.replace(b'"temperature":0.0', b'"temperature":-0.1'), "temperature -0.1"),
        (PLAIN.replace(b'"temperature":0.0', b'"temperature":10.1'), "temperature 10.1"),
        (msgspec.json.encode(ask(buffer("x"), line=3)), "line 3"),
        (msgspec.json.encode(ask(buffer("x"), character=2)), "character 2"),
        (msgspec.json.encode(ask(buffer("x"), overlay=(LineSplice(0, 5, ()),))), "0 to 5"),
        (b"", "truncated"),
        (bytes(range(256)) * 20, ""),
        (b"[" * 200_000, "object"),
        (b'{"client":' + b"[" * 200_000, "client"),
        (b'{"client":"\xff"}', "not UTF-8"),
        (PLAIN.replace(b'"timeLimitMs":null', b'"timeLimitMs":' + HUGE), "time_limit_ms"),
        (PLAIN.replace(b'"timeLimitMs":null', b'"timeLimitMs":' + LONG), "stop.timeLimitMs"),
        (PLAIN.replace(b'"maxTokens":128', b'"maxTokens":16777217'), "max_tokens"),
        (PLAIN.replace(b'"temperature":0.0', b'"temperature":1e999'), "temperature"),
        (PLAIN.replace(b'"temperature":0.0', b'"temperature":NaN'), ""),
        (PLAIN.replace(b'"seed":0', b'"seed":' + HUGE), "seed"),
        (PLAIN.replace(b'"line":0', b'"line":' + HUGE), "position.line"),
        (PLAIN.replace(b'"version":1', b'"version":' + HUGE), "version"),
        (PLAIN.replace(b'"auto"', b'"' + LONG + b',1,1"'), "lookahead"),
        (PLAIN.replace(b'"auto"', b'"9999999999,1,1"'), "9999999999"),
        (msgspec.json.encode(ask(feedback=(NEGATIVE,))), "acceptedLen"),
    ],
)
async def test_a_malformed_request_is_400_and_names_what_is_wrong(tmp_path, content, named):
    async with running_host(tmp_path, HeldEngine()) as host:
        response = await host.client.post("/v1/complete", content=content)
    assert response.status_code == 400
    assert named in msgspec.json.decode(response.content, type=Problem).message


@pytest.mark.parametrize("path", ["/v1/buffers", "/v1/buffers/close", "/v1/feedback"])
@pytest.mark.parametrize("content", [b"", b"[" * 200_000, b'{"client": "\xff"}', bytes(range(256))])
async def test_a_body_that_is_no_message_is_a_refusal(tmp_path, path, content):
    async with running_host(tmp_path, HeldEngine()) as host:
        response = await host.client.post(path, content=content)
    assert (response.status_code, response.json()["code"]) == (400, "bad_request")


async def test_a_newer_request_of_a_buffer_supersedes_those_that_run_and_wait(tmp_path):
    gate = threading.Event()

    def until_open(_: int) -> None:
        gate.wait(20)

    engine = HeldEngine(before_word=until_open)  # it ends nothing meanwhile
    async with running_host(tmp_path, engine) as host:
        first = asyncio.create_task(host.answered(ask(buffer("x"))))
        await begun(engine)
        waiting = asyncio.create_task(host.answered(ask()))
        await eventually(lambda: host.service.scheduler.load_of().waiting)
        newest = asyncio.create_task(host.answered(ask()))
        (event,) = await waiting
        gate.set()
        ended, results = await first, await newest
    assert event == ended[-1] == Failed("superseded", "the request was superseded")
    assert isinstance(results[-1], Done)
    assert len(engine.requests) == 2


async def test_edits_and_a_completion_of_a_buffer_leave_each_other_alone(tmp_path):
    engine = HeldEngine(is_held=True)
    asked, next_one = EditTask("Simplify.", 0, 1), EditTask()
    async with running_host(tmp_path, engine) as host:
        first = asyncio.create_task(host.answered(ask(buffer("x"), edit=asked)))
        await begun(engine)
        others = [
            asyncio.create_task(host.answered(ask(edit=edit))) for edit in (None, next_one, asked)
        ]
        (*_, failed) = await first
        engine.is_held = False
        answers = [await one for one in others]
    assert failed == Failed("superseded", "the request was superseded")
    assert all(isinstance(events[-1], Done) for events in answers)


async def test_what_is_closed_while_a_request_waits_is_not_taught_again(tmp_path):
    engine = HeldEngine(is_held=True)
    secret, other = buffer("KEY = 1", uri="file:///b.py"), buffer("y = 2", uri="file:///c.py")
    async with running_host(tmp_path, engine) as host:
        first = asyncio.create_task(host.answered(ask(buffer("x"), client="two")))
        await begun(engine)
        waiting = [
            asyncio.create_task(host.answered(ask(buffer("x"), secret, other))),
            asyncio.create_task(host.answered(ask(secret, uri=secret.uri))),
        ]
        await eventually(lambda: host.service.scheduler.load_of().waiting == 2)
        await host.post("/v1/buffers/close", CloseRequest("one", (secret.uri,)))
        engine.is_held = False
        (*_, done), (failed,) = [await one for one in waiting]
        await first
    assert isinstance(done, Done)
    assert failed.code == "cancelled"
    assert engine.forgotten[0].keys == {secret.uri}
    assert [one.path for one in engine.requests[-1].open_buffers] == ["c.py"]
    assert len(engine.requests) == 2


async def test_a_speculative_request_gives_way(tmp_path):
    engine = HeldEngine(is_held=True)
    async with running_host(tmp_path, engine) as host:
        task = asyncio.create_task(host.answered(ask(buffer("x"), is_prefetch=True, client="two")))
        await begun(engine)
        second = asyncio.create_task(host.answered(ask(buffer("x"))))
        await begun(engine)
        engine.is_held = False
        assert (await task)[-1].finish_reason == "cancelled"
        assert (await second)[-1].finish_reason == "end_token"


async def test_no_tokens_asked_for_is_a_prefill(tmp_path):
    engine = HeldEngine()
    async with running_host(tmp_path, engine) as host:
        (done,) = await host.answered(ask(buffer("x"), stop=StopRules(max_tokens=0)))
        assert 'outcome="prefilled"} 1.0' in (await host.client.get("/metrics")).text
    assert (done.text, done.finish_reason) == ("", "prefilled")


async def test_an_engine_that_breaks_is_one_sentence_and_the_host_lives_on(tmp_path, caplog):
    engine = BreakingEngine()
    async with running_host(tmp_path, engine) as host:
        (event,) = await host.answered(ask(buffer("my text"), character=7))
        assert event.code == "internal_error"
        assert "my text" not in event.message + caplog.text
        assert "failed: RuntimeError at " in caplog.text
        assert 'outcome="failed"} 1.0' in (await host.client.get("/metrics")).text
        assert isinstance((await host.answered(ask()))[-1], Done)


async def test_a_model_that_cannot_be_loaded_is_told_to_everyone_who_asks(tmp_path):
    def load(_):
        raise ModelNotFoundError("there is no model 9000b")

    async with running_host(tmp_path, None, load=load) as host:
        await host.ready()
        response = await host.post("/v1/complete", ask(buffer("x")))
        status = await host.status()
        assert (await host.client.get("/health")).status_code == 503
        assert (await host.client.head("/health")).status_code == 503
    assert response.status_code == 503
    assert response.json() == {"code": "model_not_found", "message": "there is no model 9000b"}
    assert (status.state, status.problem.code) == ("failed", "model_not_found")


async def test_while_the_model_loads_everyone_hears_how_far_it_is(tmp_path):
    gate = threading.Event()

    def load(progress):
        progress.begin("converting", 10)
        progress.advance(4)
        gate.wait()
        return HeldEngine()

    async with running_host(tmp_path, None, load=load) as host:
        await eventually(lambda: host.service.engine_thread.loading.now)
        response = await host.post("/v1/complete", ask(buffer("x")))
        gate.set()
        await host.ready()
        assert await host.answered(ask(buffer("x")))
    assert response.status_code == 503
    assert "converting, 4 of 10" in response.json()["message"]
    assert response.headers["retry-after"] == "1"


async def test_feedback_and_completions_are_counted(tmp_path):
    async with running_host(tmp_path, HeldEngine()) as host:
        done = (await host.answered(ask(buffer("x"))))[-1]
        told = await host.post("/v1/feedback", Feedback("one", done.id, "accepted"))
        unknown = await host.post("/v1/feedback", Feedback("one", "nothing", "shown"))
        page = (await host.client.get("/metrics")).text
    assert (told.status_code, unknown.status_code) == (204, 404)
    for line in (
        'foregram_requests_total{outcome="completed"} 1.0',
        'foregram_feedback_total{kind="accepted"} 1.0',
        "foregram_reused_prompt_tokens_total 90.0",
        'foregram_accepted_tokens_total{source="model"} 3.0',
        "foregram_pool_tokens 17.0",
    ):
        assert line in page
    assert "a.py" not in page


def counted(page, name):
    (line,) = [line for line in page.splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])


@pytest.mark.parametrize(
    ("told", "characters"),
    [
        ([("accepted", None)], len("one two three")),
        ([("accepted", 4)], 4),
        ([("accepted", 1000)], len("one two three")),
        ([("partly_accepted", 4), ("partly_accepted", 8)], 8),
        ([("partly_accepted", 8), ("partly_accepted", 4)], 8),
        ([("partly_accepted", 4), ("accepted", None)], len("one two three")),
        ([("shown", 5), ("rejected", 5)], 0),
    ],
)
async def test_accepted_characters_are_counted_once(tmp_path, told, characters):
    async with running_host(tmp_path, HeldEngine()) as host:
        done = (await host.answered(ask(buffer("x"))))[-1]
        for kind, length in told:
            await host.post("/v1/feedback", Feedback("one", done.id, kind, length))
        page = (await host.client.get("/metrics")).text
    assert counted(page, "foregram_accepted_characters_total") == characters


async def test_who_is_cancelled_while_it_waits_counts_as_cancelled(tmp_path):
    engine = HeldEngine(is_held=True)
    async with running_host(tmp_path, engine) as host:
        first = asyncio.create_task(host.answered(ask(buffer("x"))))
        await begun(engine)
        second = ask(buffer("y"), client="two")
        waiting = asyncio.create_task(host.answered(second))
        await eventually(lambda: host.service.scheduler.load_of().waiting)
        waiting.cancel()
        await eventually(lambda: not host.service.scheduler.load_of().waiting)
        engine.is_held = False
        await first
        page = (await host.client.get("/metrics")).text
    assert 'foregram_requests_total{outcome="cancelled"} 1.0' in page


async def test_an_idle_host_ends_and_one_that_stops_ends_what_runs(tmp_path):
    async with running_host(tmp_path, HeldEngine(), idle_exit_s=0.05) as host:
        await eventually(lambda: host.is_stopping)
    engine = HeldEngine()
    async with running_host(tmp_path, engine) as host:
        assert (await host.client.post("/v1/stop")).status_code == 202
    assert engine.is_closed


async def test_all_that_a_client_sent_is_forgotten_with_its_last_buffer_and_when_it_leaves(
    tmp_path,
):
    engine = HeldEngine()
    other = buffer("y", uri="file:///b.py")
    async with running_host(tmp_path, engine) as host:
        await host.answered(ask(buffer("x"), other))
        for uris in (("file:///b.py",), ("file:///a.py",), None):
            await host.post("/v1/buffers/close", CloseRequest("one", uris))
        await host.answered(ask(buffer("x"), client="two"))
    assert [one.departed for one in engine.forgotten] == ["", "one\0", "one\0"]


ADA, EVE = "the secret token of ada", "the secret token of eve"


async def withdraw_eves(host, folder):
    """Have the host read a token file in which eve's token stands no more."""
    secret_file(folder / "tokens", f"ada:{ADA}")
    await follow_tokens(host.service, host.server._principals, is_told=True)


@asynccontextmanager
async def team_host(folder, engine, **options):
    """A host of two principals; its client has the token of ada, and eve's headers."""
    path = secret_file(folder / "tokens", f"ada:{ADA}\neve:{EVE}")
    async with running_host(folder, engine, token=ADA, token_file=path, **options) as host:
        yield host, {"authorization": f"Bearer {EVE}"}


async def test_buffers_of_one_name_belong_to_their_principals(tmp_path):
    engine = HeldEngine()
    async with team_host(tmp_path, engine) as (host, eves):
        await host.answered(ask(buffer("ada's"), character=5))
        refused = await host.post("/v1/complete", ask(), eves)
        assert refused.status_code == 409
        await host.post("/v1/complete", ask(buffer("eve"), character=3), eves)
        await host.post("/v1/buffers/close", CloseRequest("one"), eves)
        await host.answered(ask(character=5))
    assert [(one.principal, one.prefix) for one in engine.requests] == [
        ("ada", "ada's"),
        ("eve", "eve"),
        ("ada", "ada's"),
    ]
    assert [one.principal for one in engine.forgotten] == ["eve"]


async def test_the_status_counts_what_is_of_who_asks_and_names_no_other(tmp_path):
    async with team_host(tmp_path, HeldEngine()) as (host, eves):
        before = await host.status("one", eves)
        await host.answered(ask(buffer("x" * 100_000), client="another"))
        after, own = await host.status("one", eves), await host.status("one")
        await host.post("/v1/complete", ask(buffer("eve")), eves)
        hers, beside = await host.status("one", eves), await host.status("one")
    assert (hers.num_other_clients, beside.num_other_clients) == (0, 1)
    assert msgspec.structs.replace(after, uptime_s=before.uptime_s) == before
    assert before.last_prompt is None
    assert before.num_clients == before.num_buffers == before.num_other_clients == 0
    assert (own.num_clients, own.num_buffers, own.num_other_clients) == (1, 1, 1)
    assert own.last_prompt is not None


async def test_feedback_about_anothers_completion_names_none_that_is_known(tmp_path):
    async with team_host(tmp_path, HeldEngine()) as (host, eves):
        done = (await host.answered(ask(buffer("x"))))[-1]
        told = Feedback("one", done.id, "accepted")
        answer = await host.post("/v1/feedback", told, eves)
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_completion")
        assert (await host.post("/v1/feedback", told)).status_code == 204


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/metrics"), ("GET", "/metrics/"), ("POST", "/v1/stop")]
)
async def test_figures_and_end_of_all_are_for_none_of_several(tmp_path, method, path):
    async with team_host(tmp_path, HeldEngine()) as (host, eves):
        answer = await host.client.request(method, path, headers=eves)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
        assert not host.is_stopping


async def test_who_asks_for_more_than_its_quota_is_429_with_when_and_why(tmp_path):
    limits = QuotaKeeper(["buffers=2"])
    async with team_host(tmp_path, HeldEngine(), limits=limits) as (host, _):
        many = SyncRequest("one", "/", tuple(buffer("x", uri=f"file:///{n}") for n in range(3)))
        answer = await host.post("/v1/buffers", many)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
        problem = msgspec.json.decode(answer.content, type=Problem)
        assert problem.code == "quota"
        assert problem.message == "you would have 3 open files here, and may have 2: close some"
        page = host.service.metrics.page({}).decode()
        assert 'foregram_refusals_total{reason="quota"} 1.0' in page


async def test_an_editor_that_asks_for_more_tokens_than_its_quota_gets_a_shorter_text(tmp_path):
    """Its own default is 128, and nobody sets it."""
    engine, limits = HeldEngine(), QuotaKeeper(["tokens=64"])
    async with team_host(tmp_path, engine, limits=limits) as (host, _):
        *_, done = await host.answered(ask(buffer("x")))
    assert isinstance(done, Done)
    assert engine.requests[0].stop.max_tokens == 64


@pytest.mark.parametrize(("quota", "most"), [(64, 64), (9999, 1024)])
async def test_no_completion_of_whatever_kind_is_longer_than_its_quota(tmp_path, quota, most):
    """Where a message of another kind does not say how long it is to be, the engine is told."""
    engine, limits = HeldEngine(), QuotaKeeper([f"tokens={quota}"])
    async with running_host(tmp_path, engine, limits=limits) as host:
        request = CompletionRequest("x", "", stop=StopRules(max_tokens=5000))
        job = CompletionJob(
            service=host.service,
            principal="ada",
            client="one",
            document="a.py",
            make=lambda: request,
        )
        *_, done = [event async for event in job.events()]
    assert isinstance(done, Done)
    assert (engine.requests[0].stop.max_tokens, engine.requests[0].principal) == (most, "ada")


async def test_who_is_no_longer_in_the_token_file_leaves_nothing_behind(tmp_path):
    engine = HeldEngine()
    async with team_host(tmp_path, engine) as (host, eves):
        await host.answered(ask(buffer("x")))
        await host.post("/v1/complete", ask(buffer("y")), eves)
        await withdraw_eves(host, tmp_path)
        assert (await host.client.get("/v1/status", headers=eves)).status_code == 401
        assert [one.principal for one in host.service.buffers.clients] == ["ada"]
        await host.answered(ask())
    assert [(one.principal, one.is_all) for one in engine.forgotten] == [
        ("eve", False),
        ("eve", True),
    ]


async def test_a_drop_in_client_that_is_no_longer_in_the_token_file_leaves_nothing_either(tmp_path):
    engine = HeldEngine()
    async with team_host(tmp_path, engine) as (host, eves):
        await host.client.post("/v1/completions", json={"prompt": "y"}, headers=eves)
        assert host.service.clients.last_prompt("eve")
        await withdraw_eves(host, tmp_path)
        assert host.service.clients.last_prompt("eve") is None
        assert "eve" not in host.service.clients._known
        await host.answered(ask(buffer("x")))
    assert engine.forgotten == [ClosedBuffers.of_all("eve")]


async def test_what_runs_for_a_token_that_is_taken_away_ends_and_is_not_remembered(tmp_path):
    engine = HeldEngine(is_held=True)
    async with team_host(tmp_path, engine) as (host, eves):
        posting = host.client.post("/v1/completions", json={"prompt": "y"}, headers=eves)
        asking = asyncio.ensure_future(posting)
        await asyncio.to_thread(engine.began.acquire)
        await withdraw_eves(host, tmp_path)
        answer = await asking
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "wrong_token")
        assert "eve" not in host.service.clients._known
        assert host.service.clients.last_prompt("eve") is None
    assert engine.ended == [FinishReason.CANCELLED]


async def test_a_drop_in_client_that_is_silent_leaves_nothing_behind(tmp_path, monkeypatch):
    engine = HeldEngine()
    async with team_host(tmp_path, engine) as (host, eves):
        await host.client.post("/v1/completions", json={"prompt": "y"}, headers=eves)
        host.service.clients.leave_silent()
        assert engine.forgotten == []
        monkeypatch.setattr("engine.host.clients._SILENT_S", 0.0)
        host.service.clients.leave_silent()
        host.service.clients.leave_silent()
        await host.answered(ask(buffer("x")))
    assert engine.forgotten == [ClosedBuffers.of_all("eve", "drop-in\0eve")]


@pytest.mark.parametrize("path", ["/v1/complete", "/v1/buffers", "/v1/completions"])
async def test_a_body_that_comes_when_its_token_was_taken_away_is_refused(tmp_path, path):
    engine = HeldEngine()
    async with team_host(tmp_path, engine) as (host, eves):
        whole = msgspec.json.encode(ask(buffer("y")))
        if path == "/v1/completions":
            whole = b'{"prompt": "y"}'

        async def body():
            yield whole[:5]
            while "eve" not in host.service.limits._requests:
                await asyncio.sleep(0)
            await withdraw_eves(host, tmp_path)
            yield whole[5:]

        length = {"content-type": "application/json", "content-length": str(len(whole))}
        answer = await host.client.post(path, content=body(), headers=eves | length)
        assert (answer.status_code, "none of this host's any more" in answer.text) == (401, True)
        assert not host.service.buffers.clients
    assert not engine.requests


async def test_a_body_that_comes_when_another_token_was_taken_away_is_answered(tmp_path):
    async with team_host(tmp_path, HeldEngine()) as (host, _):

        async def body():
            yield b'{"prom'
            while "ada" not in host.service.limits._requests:
                await asyncio.sleep(0)
            await withdraw_eves(host, tmp_path)
            yield b'pt": "y"}'

        headers = {"content-type": "application/json", "content-length": "15"}
        answer = await host.client.post("/v1/completions", content=body(), headers=headers)
        assert answer.status_code == 200


@pytest.mark.parametrize("others", [[], [("two", b"# no figures\n")]])
async def test_one_of_several_hosts_tells_its_own_figures_whoever_answers(others):
    async def ask_all(*_):
        return others

    service = CompletionService(lambda _: HeldEngine())
    app = guarded_app(
        *(service, EnabledApis(), Principals()), is_loopback=False, ask_all=ask_all, replica="one"
    )
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://host") as client:
        page = (await client.get("/metrics")).text
    assert 'foregram_running{replica="one"} 0.0' in page.splitlines()
