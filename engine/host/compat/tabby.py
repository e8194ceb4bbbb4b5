"""Tabby's completions, health and events, as tabby-agent and its editors use them."""

import os
import platform
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

import msgspec
from litestar import MediaType, Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromQuery
from msgspec import Meta

from engine.completer import EngineInfo
from engine.host.bodies import decoded
from engine.host.compat.drop_in_api import (
    Body,
    DropInApi,
    DropInCompletion,
    Json,
    TextRequest,
    read_as,
    refuse,
)
from engine.host.principals import principal_of
from engine.host.protocol import Feedback, FeedbackKind, Integer
from engine.host.service import CompletionService
from engine.request import Chunk, Done, Snippet

_MAX_TOKENS = 64  # Tabby's default, which requests cannot change
_RELEASE = "v0.32.0"  # the Tabby release with this API; clients check it
_ID_PREFIX = "cmpl-"
_NO_DEBUGGING = {
    "raw_prompt": (None,),
    "disable_retrieval_augmented_code_completion": (None, False),
}
_KINDS: dict[str, FeedbackKind] = {"view": "shown", "select": "accepted", "dismiss": "rejected"}


class TabbySnippet(msgspec.Struct, frozen=True):
    """A piece of another file: a declaration or a search result."""

    body: str
    filepath: str | None = None


class TabbySegments(msgspec.Struct, frozen=True):
    """The text around the cursor, and related snippets. The clipboard field is ignored."""

    prefix: str
    suffix: str | None = None
    filepath: str | None = None
    declarations: list[TabbySnippet] | None = None
    relevant_snippets_from_changed_files: list[TabbySnippet] | None = None
    relevant_snippets_from_recently_opened_files: list[TabbySnippet] | None = None


class TabbyBody(msgspec.Struct, frozen=True):
    """The body of `/v1/completions`."""

    segments: TabbySegments
    debug_options: dict[str, Any] = {}
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0  # above 0 for several texts
    seed: Integer | None = None


class TabbyEvent(msgspec.Struct, frozen=True):
    """The user's reaction to a completion."""

    type: Literal["view", "select", "dismiss"]
    completion_id: str


class _TabbyCompletion(DropInCompletion):
    def answer(self, chunks: Sequence[Chunk], done: Done) -> Json:  # noqa: ARG002 - the end has it all
        choice = {"text": done.text, "index": 0}
        return {"id": f"{_ID_PREFIX}{done.id}", "choices": [choice], "mode": "standard"}


def _read(_path: str, body: Body, model: EngineInfo) -> _TabbyCompletion:
    asked = read_as(TabbyBody, body, {"mode": ("standard",)})
    refuse(asked.debug_options, _NO_DEBUGGING)
    segments = asked.segments
    snippets = (  # best first, in Tabby's order
        *(segments.declarations or ()),
        *(segments.relevant_snippets_from_changed_files or ()),
        *(segments.relevant_snippets_from_recently_opened_files or ()),
    )
    request = TextRequest(
        prefix=segments.prefix,
        suffix=segments.suffix or "\n",
        path=_file_path(segments.filepath),
        snippets=tuple(Snippet(_file_path(one.filepath), one.body) for one in snippets),
        max_tokens=_MAX_TOKENS,
        temperature=asked.temperature,
        seed=asked.seed,
    )
    return _TabbyCompletion(request, model)


def _health(model: EngineInfo) -> Json:
    local = {"model_id": model.model, "device": model.device, "cuda_devices": []}
    built = dict.fromkeys(("build_date", "build_timestamp", "git_sha"), "")
    return {
        "device": model.device,
        "cuda_devices": [],
        "models": {"completion": {"local": local}, "embedding": {}},
        "arch": platform.machine(),
        "cpu_info": platform.processor(),
        "cpu_count": os.cpu_count() or 1,
        "version": {**built, "git_describe": _RELEASE},
        "webserver": False,
    }


def _routes(service: CompletionService) -> list[HTTPRouteHandler]:
    @post("/v1/events", status_code=200)
    async def events(
        request: Request[Any, Any, Any], select_kind: FromQuery[str] = ""
    ) -> Response[bytes]:
        event = decoded(await request.body(), TabbyEvent)
        kind, length = _KINDS[event.type], None
        if event.type == "select" and select_kind == "line":  # the event has no length
            kind, length = "partly_accepted", 0
        feedback = Feedback("", event.completion_id.removeprefix(_ID_PREFIX), kind, length)
        service.clients.record(principal_of(request.scope), feedback)  # it may be unknown
        return Response(b"", media_type=MediaType.TEXT)

    @get("/v1beta/server_setting")
    async def server_setting() -> dict[str, bool]:
        return {"disable_client_side_telemetry": True}

    return [events, server_setting]


def _file_path(name: str | None) -> str:
    """Return a file's path; the agent names files outside its workspace by URI."""
    if name is None or not name.startswith("file://"):
        return name or ""
    try:
        return unquote(urlsplit(name).path)
    except ValueError:  # not a URI
        return name


TABBY = DropInApi(
    name="tabby",
    paths=("/v1/completions",),
    marker="segments",
    read=_read,
    refusal=lambda _, problem: problem,  # Tabby has no error format
    other_paths=("/v1/events", "/v1beta/server_setting"),
    routes=_routes,
    health=_health,
)
