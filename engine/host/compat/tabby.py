"""Tabby's completions, its health and its events, as tabby-agent and so its editors use them.

Its agent takes a request back by closing the connection. Texts are greedy unless a request asks for
a temperature, as the agent does where a person asks for more than one text.
"""

import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

import msgspec
from litestar import MediaType, Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromQuery
from msgspec import Meta

from engine.errors import InputError
from engine.host.bodies import decoded
from engine.host.clients import UnknownCompletionError
from engine.host.compat.drop_in_api import DropInApi, DropInCompletion, Json, ServedModel
from engine.host.compat.text_request import Body, TextRequest, refuse
from engine.host.principals import principal_of
from engine.host.protocol import Done, Feedback, FeedbackKind, Integer, Problem
from engine.host.service import CompletionService
from engine.request import Chunk, Snippet

_MAX_TOKENS = 64  # Tabby's own default, and no request says another
_RELEASE = "v0.32.0"  # of Tabby, whose API this is: clients ask whether they may use it
_ID_PREFIX = "cmpl-"
_KINDS: dict[str, FeedbackKind] = {"view": "shown", "select": "accepted", "dismiss": "rejected"}


class TabbySnippet(msgspec.Struct, frozen=True):
    """A piece of another file: a declaration, or one that was found."""

    body: str
    filepath: str | None = None


class TabbySegments(msgspec.Struct, frozen=True):
    """The text around the cursor and what the client found for it. A clipboard is not read."""

    prefix: str
    suffix: str | None = None
    filepath: str | None = None
    declarations: list[TabbySnippet] | None = None
    relevant_snippets_from_changed_files: list[TabbySnippet] | None = None
    relevant_snippets_from_recently_opened_files: list[TabbySnippet] | None = None

    @property
    def snippets(self) -> tuple[Snippet, ...]:
        """All of them, the best first, as Tabby orders them."""
        found = (
            *(self.declarations or ()),
            *(self.relevant_snippets_from_changed_files or ()),
            *(self.relevant_snippets_from_recently_opened_files or ()),
        )
        return tuple(Snippet(_path(one.filepath), one.body) for one in found)


class TabbyDebugOptions(msgspec.Struct, frozen=True):
    """To try a prompt of one's own."""

    raw_prompt: str | None = None
    disable_retrieval_augmented_code_completion: bool | None = None


class TabbyBody(msgspec.Struct, frozen=True):
    """What `/v1/completions` is asked."""

    segments: TabbySegments | None = None
    debug_options: TabbyDebugOptions = TabbyDebugOptions()
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    seed: Integer | None = None


class TabbyEvent(msgspec.Struct, frozen=True):
    """What became of a completion."""

    type: Literal["view", "select", "dismiss"]
    completion_id: str


class TabbyCompletion(DropInCompletion):
    """A completion as Tabby's clients see it. There are no streams."""

    def answer(self, chunks: Sequence[Chunk], done: Done) -> Json:  # noqa: ARG002 - the end has it all
        """The text, and the name by which events call it."""
        choice = {"text": done.text, "index": 0}
        return {"id": f"{_ID_PREFIX}{done.id}", "choices": [choice], "mode": "standard"}


class Tabby(DropInApi):
    """The API."""

    name = "tabby"
    paths: tuple[str, ...] = ("/v1/completions",)
    other_paths: tuple[str, ...] = ("/v1/events", "/v1beta/server_setting")
    marker = "segments"

    def is_meant(self, body: Body) -> bool:
        """By its segments, or by the one thing that may stand in their place."""
        options = body.get("debug_options")
        return self.marker in body or (isinstance(options, dict) and "raw_prompt" in options)

    def read(self, path: str, body: Body, model: ServedModel) -> TabbyCompletion:  # noqa: ARG002 - it has one
        """Raises InputError and ValidationError."""
        refuse(body, {"mode": ("standard",)})
        return TabbyCompletion(_request(msgspec.convert(body, TabbyBody)), model)

    def refusal(self, status: int, problem: Problem) -> Problem:  # noqa: ARG002 - the answer has it
        """Tabby has no form of its own."""
        return problem

    def health(self, service: CompletionService) -> Json:
        """What the agent wants to know before it asks for anything."""
        info = service.engine_thread.ready_engine().info
        model = {"model_id": info.model, "device": info.device, "cuda_devices": []}
        return {
            "device": info.device,
            "cuda_devices": [],
            "models": {"completion": {"local": model}, "embedding": {}},
            "arch": platform.machine(),
            "cpu_info": platform.processor(),
            "cpu_count": os.cpu_count() or 1,
            "version": {
                "build_date": "",
                "build_timestamp": "",
                "git_sha": "",
                "git_describe": _RELEASE,
            },
            "webserver": False,
        }

    def routes(self, service: CompletionService) -> list[HTTPRouteHandler]:
        """Events, and what the server wants its clients to do."""

        @post("/v1/events", status_code=200)
        async def events(
            request: Request[Any, Any, Any], select_kind: FromQuery[str] = ""
        ) -> Response[bytes]:
            """Count what became of a completion."""
            event = decoded(await request.body(), TabbyEvent)
            feedback = _feedback(event, is_line=select_kind == "line")
            with suppress(UnknownCompletionError):  # Tabby, too, believes whatever it is told
                service.clients.record(principal_of(request.scope), feedback)
            return Response(b"", media_type=MediaType.TEXT)

        @get("/v1beta/server_setting")
        async def server_setting() -> dict[str, bool]:
            """Ask the agent to report to nobody else."""
            return {"disable_client_side_telemetry": True}

        return [events, server_setting]


def _request(asked: TabbyBody) -> TextRequest:
    """What is to be completed. Raises InputError."""
    options, segments = asked.debug_options, asked.segments
    request = partial(
        TextRequest, max_tokens=_MAX_TOKENS, temperature=asked.temperature, seed=asked.seed
    )
    if options.raw_prompt is not None:
        return request(prefix=options.raw_prompt, is_raw=True)
    if segments is None:
        raise InputError("the body has neither segments nor debug_options.raw_prompt")
    is_alone = options.disable_retrieval_augmented_code_completion
    return request(
        prefix=segments.prefix,
        suffix=segments.suffix or "\n",
        path=_path(segments.filepath),
        snippets=() if is_alone else segments.snippets,
    )


def _path(name: str | None) -> str:
    """The path of a file; the agent names those outside of its workspace by their URIs."""
    if name is None or not name.startswith("file://"):
        return name or ""
    try:
        return unquote(urlsplit(name).path)
    except ValueError:  # no URI after all
        return name


def _feedback(event: TabbyEvent, *, is_line: bool) -> Feedback:
    """The event in the host's own words. How long an accepted line was is not told."""
    completion_id = event.completion_id.removeprefix(_ID_PREFIX)
    if event.type == "select" and is_line:
        return Feedback("", completion_id, "partly_accepted", 0)
    return Feedback("", completion_id, _KINDS[event.type])
