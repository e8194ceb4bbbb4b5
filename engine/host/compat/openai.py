"""OpenAI's completions and models, and Mistral's completions, which are answered as messages."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from litestar import get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from engine.completer import EngineInfo
from engine.host.compat.drop_in_api import (
    DONE,
    Body,
    DropInApi,
    Json,
    TextRequest,
    event,
    only_prompt,
    read_as,
)
from engine.host.compat.openai_answer import (
    OpenAIAnswer,
    TextBody,
    fingerprint,
    finish_reason,
    message,
)
from engine.host.compat.openai_chat import CHAT_PATH, read_chat
from engine.host.protocol import Problem
from engine.host.service import CompletionService
from engine.request import Chunk, Done, TokenText

_NEUTRAL: dict[str, tuple[object, ...]] = {
    "echo": (False,),
    "n": (1,),
    "best_of": (1,),
    "logprobs": (0, 1),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
}
# Mistral's API has no penalties, but Continue may send them.
_FIM_NEUTRAL = {"min_tokens": (0,), "presence_penalty": (0,), "frequency_penalty": (0,)}
_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {"prompt_too_long": "context_length_exceeded"}  # OpenAI's, by which clients shorten a chat


class HoleBody(TextBody, frozen=True, kw_only=True):
    """The common body of OpenAI's and Mistral's requests."""

    prompt: str | list[Any]
    suffix: str | None = None  # with None, the prompt is continued verbatim
    max_tokens: int = 16  # OpenAI's default

    def request(self, *, tells_tokens: bool = False) -> TextRequest:
        """Return the request. Raises InputError."""
        return self.sampled(
            TextRequest(
                prefix=only_prompt(self.prompt),
                suffix=self.suffix or "",
                is_raw=self.suffix is None,
                max_tokens=self.max_tokens,
                tells_tokens=tells_tokens,
            )
        )


class OpenAIBody(HoleBody, frozen=True, kw_only=True):
    """The body of `/v1/completions`: https://platform.openai.com/docs/api-reference/completions."""

    logprobs: int | None = None


class FimBody(HoleBody, frozen=True, kw_only=True):
    """The body of `/v1/fim/completions`: https://docs.mistral.ai/api/endpoint/fim."""

    prompt: str
    suffix: str = ""
    max_tokens: int = 128
    seed: int | None = msgspec.field(default=None, name="random_seed")


@dataclass(slots=True)
class _OpenAICompletion(OpenAIAnswer):
    _offset: int = 0  # characters before the next token

    def answer(self, chunks: Sequence[Chunk], done: Done) -> Json:
        tokens = [token for chunk in chunks for token in chunk.tokens]
        choice = _choice(done.text, self._logprobs(tokens), finish_reason(done))
        return self._completion(done.id, [choice], done)

    def piece(self, chunk: Chunk) -> bytes:
        return event(
            self._completion(chunk.id, [_choice(chunk.text, self._logprobs(chunk.tokens))])
        )

    def end(self, done: Done) -> bytes:
        events = event(self._completion(done.id, [_choice("", None, finish_reason(done))]))
        if self.tells_usage:
            events += event(self._completion(done.id, [], done))
        return events + DONE

    def _completion(
        self, completion_id: str, choices: list[Json], done: Done | None = None
    ) -> Json:
        answer = self.body("text_completion", f"cmpl-{completion_id}", choices, done)
        return answer | {"system_fingerprint": fingerprint(self.model)}

    def _logprobs(self, tokens: Sequence[TokenText]) -> Json | None:
        if self.num_logprobs is None:
            return None
        offsets = []
        for token in tokens:
            offsets.append(self._offset)
            self._offset += len(token.text)
        return {
            "tokens": [one.text for one in tokens],
            "token_logprobs": [one.log_prob for one in tokens],
            "top_logprobs": [{one.text: one.log_prob} for one in tokens]
            if self.num_logprobs
            else None,
            "text_offset": offsets,
        }


@dataclass(slots=True)
class _FimCompletion(OpenAIAnswer):
    def answer(self, chunks: Sequence[Chunk], done: Done) -> Json:  # noqa: ARG002 - the end has all text
        choice = {"message": message(done.text), "finish_reason": finish_reason(done)}
        return self.body("chat.completion", done.id, [{"index": 0, **choice}], done)

    def piece(self, chunk: Chunk) -> bytes:
        return event(self._delta(chunk.id, chunk.text))

    def end(self, done: Done) -> bytes:
        return event(self._delta(done.id, "", done)) + DONE

    def _delta(self, completion_id: str, text: str, done: Done | None = None) -> Json:
        reason = None if done is None else finish_reason(done)
        choice = {"index": 0, "delta": message(text), "finish_reason": reason}
        return self.body("chat.completion.chunk", completion_id, [choice], done)


def _choice(text: str, logprobs: Json | None, reason: str | None = None) -> Json:
    return {"text": text, "index": 0, "logprobs": logprobs, "finish_reason": reason}


def _read(path: str, body: Body, model: EngineInfo) -> OpenAIAnswer:
    if path == CHAT_PATH:
        return read_chat(body, model)
    asked = read_as(OpenAIBody, body, _NEUTRAL)
    return _OpenAICompletion(
        asked.request(tells_tokens=asked.logprobs is not None),
        model,
        asked.stream,
        tells_usage=bool(asked.stream_options.include_usage),
        num_logprobs=asked.logprobs,
    )


def _read_fim(_path: str, body: Body, model: EngineInfo) -> _FimCompletion:
    asked = read_as(FimBody, body, _FIM_NEUTRAL)
    return _FimCompletion(asked.request(), model, asked.stream)


def _error(status: int, problem: Problem) -> Json:
    kind, code = error_type(status), _CODES.get(problem.code, problem.code)
    return {"message": problem.message, "type": kind, "code": code, "param": None}


def _routes(service: CompletionService) -> list[HTTPRouteHandler]:
    created = int(time.time())

    def card() -> Json:
        model = service.engine_thread.ready_engine().info
        return {
            "id": model.model,
            "created": created,
            "owned_by": "foregram",
            "context_length": model.context_len,  # this and the next two extend OpenAI's
            "max_model_len": model.context_len,
            "capabilities": {"completion_fim": True, "completion_chat": model.has_chat},
            "object": "model",
        }

    @get("/v1/models")
    async def models() -> Json:
        return {"data": [card()], "object": "list"}

    @get("/v1/models/{model_id:path}")
    async def model(model_id: FromPath[str]) -> Json:
        found = card()
        if model_id.removeprefix("/") != found["id"]:
            raise NotFoundException(f"this host serves {found['id']} and no other model")
        return found

    return [models, model]


def error_type(status: int) -> str:
    """Return OpenAI's name for errors with an HTTP status."""
    return _ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")


OPENAI = DropInApi(
    name="openai",
    paths=("/v1/completions", CHAT_PATH),
    marker="prompt",
    read=_read,
    refusal=lambda status, problem: {"error": _error(status, problem)},
    other_paths=("/v1/models",),
    routes=_routes,
)
MISTRAL = DropInApi(
    name="mistral",
    paths=("/v1/fim/completions",),
    marker="prompt",
    read=_read_fim,
    refusal=lambda status, problem: _error(status, problem) | {"object": "error"},
)
