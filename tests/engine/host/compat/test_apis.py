"""What all drop-in APIs have in common: which is meant, what fails, what is switched on."""

import asyncio
import gc
import threading
from typing import Any

import msgspec
import pytest

from engine.errors import ConfigurationError, InputError
from engine.host.compat import apis as module
from engine.host.compat.apis import NAMES, EnabledApis
from engine.host.compat.drop_in_api import TextRequest
from engine.host.protocol import PROTOCOL_HEADER
from engine.request import FinishReason
from tests.support.held_engine import HeldEngine
from tests.support.polling import eventually
from tests.support.running_host import engine_after, running_host

COMPLETIONS = "/v1/completions"


EVERY = ",".join(NAMES)
ALL = EnabledApis.named(EVERY)
# One request of each API: its path, its body, and fields that hold a whole number.
REQUESTS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "openai": (COMPLETIONS, {"prompt": "x"}, ("max_tokens", "n", "best_of", "logprobs", "seed")),
    "mistral": (
        "/v1/fim/completions",
        {"prompt": "x"},
        ("max_tokens", "min_tokens", "random_seed"),
    ),
    "llama-cpp": (
        "/infill",
        {"input_prefix": "x", "input_suffix": "y"},
        ("n_predict", "n_indent", "n_cmpl", "t_max_predict_ms", "id_slot", "seed", "n_probs"),
    ),
    "tabby": (COMPLETIONS, {"segments": {"prefix": "x"}}, ("seed",)),
}


def test_where_apis_share_a_path_the_body_tells_which_is_meant():
    assert ALL.meant(COMPLETIONS, {"prompt": "x"}).name == "openai"
    assert ALL.meant(COMPLETIONS, {"segments": {}}).name == "tabby"
    for body in ({}, {"prompt": "x", "segments": {}}):
        with pytest.raises(InputError, match=r"`prompt` \(openai\), or `segments` \(tabby\)"):
            ALL.meant(COMPLETIONS, body)


@pytest.mark.parametrize("names", ["openai,nonsense", "", "none,openai", "OpenAI"])
def test_an_unknown_api_is_refused_with_those_that_there_are(names):
    with pytest.raises(ConfigurationError, match=", ".join(NAMES)):
        EnabledApis.named(names)


def test_apis_are_named_between_commas():
    assert EnabledApis.named("none") == EnabledApis()
    assert EnabledApis.named("mistral, openai") == EnabledApis.named("openai,mistral")


@pytest.mark.parametrize("path", ["/v1/complete", "/v1/completionsx", "/v1/status", "/v1/modelsx"])
def test_paths_of_the_native_protocol_stay_its_own(path):
    assert ALL.at(path) is None


async def test_what_is_switched_off_is_not_there(tmp_path):
    async with running_host(tmp_path, HeldEngine(), apis="none") as host:
        for path in (COMPLETIONS, "/v1/models", "/v1/health"):
            assert (await host.client.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/infill", "--api openai,llama-cpp"),
        ("/v1/fim/completions", "--api openai,mistral"),
        ("/v1/events", "--api openai,tabby"),
        ("/v1/embeddings", "there is no path"),
    ],
)
async def test_a_client_of_another_api_hears_which_one_to_switch_on(tmp_path, path, told):
    async with running_host(tmp_path, HeldEngine()) as host:
        del host.client.headers[PROTOCOL_HEADER]
        response = await host.client.post(path, json={})
        ours = await host.client.get("/v1/status")
    assert response.status_code == 404
    assert told in response.text
    assert ours.status_code == 426


@pytest.mark.parametrize("spoken", ["openai", "openai,mistral"])
async def test_a_body_of_an_api_that_is_switched_off_hears_how_to_have_it_too(tmp_path, spoken):
    async with running_host(tmp_path, HeldEngine(), apis=spoken) as host:
        response = await host.client.post(COMPLETIONS, json={"segments": {"prefix": "x"}})
    assert response.status_code == 400
    assert f"--api {spoken},tabby" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"{", "truncated"),
        (b"[]", "object"),
        (b'"x"', "object"),
        (b'{"prompt": "\xff"}', "UTF-8"),
        (b'{"prompt": ' + b"[" * 200_000, "deep"),
        (b'{"prompt": "x", "seed": 1.5}', "seed"),
        (b'{"prompt": "x", "seed": 1e400}', "range"),
        (b'{"prompt": "x", "max_tokens": 9e99}', "max_tokens"),
    ],
)
async def test_a_malformed_body_is_400_in_the_form_of_the_api(tmp_path, content, named):
    async with running_host(tmp_path, HeldEngine()) as host:
        response = await host.client.post(COMPLETIONS, content=content)
    assert response.status_code == 400
    assert named in response.json()["error"]["message"]


_NEUTRAL = {"max_tokens": 64.0, "n_predict": 64.0, "n": 1.0, "best_of": 1.0, "n_cmpl": 1.0}


@pytest.mark.parametrize("api", REQUESTS)
async def test_a_whole_number_may_be_written_with_a_point(tmp_path, api):
    path, body, names = REQUESTS[api]
    engine = HeldEngine()
    async with running_host(tmp_path, engine, apis=EVERY) as host:
        for name in names:
            given = {name: _NEUTRAL.get(name, 0.0)}
            response = await host.client.post(path, json=body | given)
            assert response.status_code == 200, (given, response.text)
    if api != "tabby":
        assert 64 in {one.stop.max_tokens for one in engine.requests}


_NULLS = {
    "openai": (
        *("suffix", "max_tokens", "temperature", "top_p", "n", "best_of", "stream", "segments"),
        *("stream_options", "logprobs", "echo", "stop", "presence_penalty", "logit_bias", "user"),
    ),
    "mistral": ("suffix", "max_tokens", "min_tokens", "temperature", "top_p", "stop", "stream"),
    "llama-cpp": (
        *("input_extra", "prompt", "n_predict", "samplers", "seed", "stop", "stream", "grammar"),
        *("json_schema", "logit_bias", "lora", "ignore_eos", "response_fields", "n_cmpl"),
    ),
    "tabby": ("prompt", "mode", "debug_options", "temperature", "seed", "user", "language"),
}


@pytest.mark.parametrize("api", REQUESTS)
async def test_a_field_that_is_null_is_as_if_it_were_not_there(tmp_path, api):
    path, body, _ = REQUESTS[api]
    async with running_host(tmp_path, HeldEngine(), apis=EVERY) as host:
        without = await host.client.post(path, json=body)
        for name in _NULLS[api]:
            response = await host.client.post(path, json=body | {name: None})
            assert response.status_code == 200, (name, response.text)
            assert response.json().keys() == without.json().keys()


async def test_null_in_what_is_nested_is_as_if_it_were_not_there(tmp_path):
    snippet = {"filepath": None, "body": "b"}
    tabby = {"prefix": "x", "suffix": None, "filepath": None, "declarations": [snippet]}
    options = {"raw_prompt": None, "disable_retrieval_augmented_code_completion": None}
    llama = {"input_prefix": "x", "input_suffix": "y"}
    async with running_host(tmp_path, HeldEngine(), apis=EVERY) as host:
        for path, body in (
            (COMPLETIONS, {"segments": tabby, "debug_options": options}),
            ("/infill", llama | {"input_extra": [{"filename": None, "text": "t"}, {"text": None}]}),
            (COMPLETIONS, {"prompt": "x", "stream_options": {"include_usage": None}}),
        ):
            response = await host.client.post(path, json=body)
            assert response.status_code == 200, response.text


async def test_a_body_over_the_limit_is_413_in_the_form_of_the_api(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.host.app.MAX_BODY_BYTES", 1000)
    async with running_host(tmp_path, HeldEngine()) as host:
        response = await host.client.post(COMPLETIONS, json={"prompt": "x" * 2000})
    assert response.status_code == 413
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "too_large")


async def test_while_the_model_loads_who_asks_hears_when_to_come_back(tmp_path):
    may_load = threading.Event()
    load = engine_after(may_load, HeldEngine())
    async with running_host(tmp_path, None, load=load) as host:
        response = await host.client.post(COMPLETIONS, json={"prompt": "x"})
        models = await host.client.get("/v1/models")
        health = await host.client.get("/v1/health")
        may_load.set()
        await host.ready()
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert response.json()["error"]["code"] == "loading"
    assert models.json()["error"]["code"] == "loading"
    assert (health.status_code, health.json()) == (503, {"status": "loading"})


class Breaking(HeldEngine):
    """Breaks, or refuses, after its first word."""

    error: Exception = RuntimeError("secret text")
    words = ("one ",)

    def completing(self, request, **callbacks: Any):
        if callbacks:
            yield from super().completing(request, **callbacks)
        raise self.error


async def test_a_completion_that_breaks_before_its_first_word_is_500_without_its_text(tmp_path):
    engine = Breaking(words=())
    async with running_host(tmp_path, engine) as host:
        for streamed in (False, True):
            body = {"prompt": "x", "stream": streamed}
            response = await host.client.post(COMPLETIONS, json=body)
            assert response.status_code == 500
            assert response.json()["error"]["type"] == "server_error"
            assert "secret" not in response.text


async def test_a_stream_that_breaks_later_ends_with_the_error(tmp_path):
    async with running_host(tmp_path, Breaking()) as host:
        response = await host.client.post(COMPLETIONS, json={"prompt": "x", "stream": True})
    *_, last = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert response.status_code == 200
    assert msgspec.json.decode(last)["error"]["code"] == "internal_error"


async def test_what_cannot_be_completed_is_400_also_in_a_stream(tmp_path):
    engine = Breaking(words=())
    engine.error = InputError("the prompt has too many tokens")
    async with running_host(tmp_path, engine) as host:
        response = await host.client.post(COMPLETIONS, json={"prompt": "x", "stream": True})
    assert response.status_code == 400
    assert "too many" in response.json()["error"]["message"]


async def test_what_is_refused_is_let_go_at_once(tmp_path):
    """Its error knew itself: bodies of 30 MB stayed until a collector of cycles came by."""
    engine, prompt = Breaking(words=()), "a prompt of its own" * 9
    engine.error = InputError("the prompt has too many tokens")
    gc.collect()
    gc.disable()
    try:
        async with running_host(tmp_path, engine) as host:
            assert (await host.client.post(COMPLETIONS, json={"prompt": prompt})).status_code == 400
        held = [one for one in gc.get_objects() if type(one) is TextRequest]
    finally:
        gc.enable()
    assert prompt not in [one.prefix for one in held]


async def test_a_stream_that_waits_is_kept_alive_by_comments(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_KEEP_ALIVE_S", 0.02)
    engine = HeldEngine(is_held=True)
    async with running_host(tmp_path, engine) as host:
        body = {"prompt": "x", "stream": True}
        async with host.client.stream("POST", COMPLETIONS, json=body) as response:
            lines = response.aiter_lines()
            assert await anext(lines) == ": keep-alive"
            engine.permits.release(3)
            rest = [line async for line in lines]
    assert rest[-2:] == ["data: [DONE]", ""]


async def test_the_line_ends_of_the_file_come_back(tmp_path):
    engine = HeldEngine(words=("one\n", "two"))
    async with running_host(tmp_path, engine) as host:
        body = {"prompt": "a\r\nb", "suffix": "\r\n", "stop": ["\r\n\r\n"]}
        response = await host.client.post(COMPLETIONS, json=body)
    assert response.json()["choices"][0]["text"] == "one\r\ntwo"
    (request,) = engine.requests
    assert (request.prefix, request.suffix) == ("a\nb", "\n")
    assert request.stop.strings == ("\n\n",)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *((path, body) for path, body, _ in REQUESTS.values()),
        (COMPLETIONS, {"prompt": "x", "stream": True}),
        ("/v1/fim/completions", {"prompt": "x", "stream": True}),
        ("/infill", {"input_prefix": "x", "input_suffix": "y", "stream": True}),
        ("/completion", {"prompt": "x"}),
    ],
)
async def test_a_client_that_goes_away_ends_the_work_within_a_step(tmp_path, path, body):
    engine = HeldEngine(is_held=True)
    async with running_host(tmp_path, engine, apis=EVERY) as host:
        asking = asyncio.create_task(host.client.post(path, json=body))
        await asyncio.to_thread(engine.began.acquire)
        asking.cancel()
        await eventually(lambda: engine.ended)
    assert engine.ended == [FinishReason.CANCELLED]


def error_of(api, answer):
    """The part of an error that says what is wrong."""
    return answer.json()["error"] if api in ("openai", "llama-cpp") else answer.json()


@pytest.mark.parametrize(
    ("api", "kind", "fields"),
    [
        ("openai", "authentication_error", {"error"}),
        ("mistral", "authentication_error", {"message", "type", "code", "param", "object"}),
        ("llama-cpp", "authentication_error", {"error", "content"}),
        ("tabby", None, {"code", "message"}),
    ],
)
async def test_errors_have_the_form_of_the_api(tmp_path, api, kind, fields):
    path, body, _ = REQUESTS[api]
    token = "a-token-for-this-test"
    async with running_host(tmp_path, HeldEngine(), apis=api, token=token) as host:
        bare = {"foregram-protocol": ""}
        strange, foreign = {"authorization": "Bearer x"}, {"origin": "https://evil.example"}
        wrong = await host.client.post(path, json=body, headers=bare | strange)
        page = await host.client.post(path, json=body, headers=bare | foreign)
        right = await host.client.post(path, json=body, headers=bare)
        mistaken = await host.client.post(path, json=body | {"seed": "x", "random_seed": "x"})
        health = await host.client.post("/v1/health", headers=strange)
    statuses = [one.status_code for one in (wrong, page, right, mistaken, health)]
    assert statuses == [401, 403, 200, 400, 401]
    assert wrong.headers["www-authenticate"] == "Bearer"
    assert wrong.json().keys() == mistaken.json().keys() == fields
    assert error_of(api, wrong).get("type") == kind
    assert "seed" in error_of(api, mistaken)["message"]


@pytest.mark.parametrize("api", REQUESTS)
async def test_a_wrong_method_and_a_path_below_have_the_form_of_the_api(tmp_path, api):
    path, _, _ = REQUESTS[api]
    async with running_host(tmp_path, HeldEngine(), apis=api) as host:
        method, missing = await host.client.get(path), await host.client.post(f"{path}/x", json={})
    assert (method.status_code, missing.status_code) == (405, 404)
    assert "POST" in method.headers["allow"]
    for answer in (method, missing):
        assert error_of(api, answer)["message"]
