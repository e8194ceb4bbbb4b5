"""OpenAI's `/v1/completions` and `/v1/models`.

A prompt with a suffix is a text with a hole and goes through the model's own layout. A prompt
without one is continued as it stands, and the names of special tokens in it are these tokens.
https://platform.openai.com/docs/api-reference/completions
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from litestar import get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from engine.host.compat.drop_in_api import (
    DONE,
    DropInApi,
    DropInCompletion,
    Json,
    ServedModel,
    event,
)
from engine.host.compat.text_request import (
    Body,
    StopField,
    TextRequest,
    check_top_p,
    only_prompt,
    refuse,
    stop_strings,
)
from engine.host.protocol import Done, Problem
from engine.host.service import CompletionService
from engine.request import Chunk, FinishReason, TokenText

_NEUTRAL: dict[str, tuple[object, ...]] = {
    "echo": (False,),
    "n": (1,),
    "best_of": (1,),
    "logit_bias": ({},),
    "logprobs": (0, 1),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
}
_CUT = (
    FinishReason.MAX_TOKENS,
    FinishReason.CONTEXT_FULL,
    FinishReason.TIME,
    FinishReason.PREFILLED,
)
_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}


class StreamOptions(msgspec.Struct, frozen=True):
    """What a stream says besides its text."""

    include_usage: bool | None = None


class OpenAIBody(msgspec.Struct, frozen=True):
    """What is posted to `/v1/completions`; unknown fields are ignored."""

    prompt: str | list[Any]
    suffix: str | None = None
    max_tokens: int = 16  # OpenAI's own default
    temperature: float = 0.0
    top_p: float = 1.0
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    logprobs: int | None = None
    stop: StopField = ""
    seed: int | None = None


@dataclass(slots=True)
class OpenAICompletion(DropInCompletion):
    """A completion as OpenAI's clients see it."""

    tells_usage: bool = False  # at the end of a stream
    num_logprobs: int | None = None
    created: int = field(default_factory=lambda: int(time.time()))
    _offset: int = 0  # of the next token, in characters

    def answer(self, chunks: Sequence[Chunk], done: Done) -> Json:
        """The text with its usage."""
        tokens = [token for chunk in chunks for token in chunk.tokens]
        choice = _choice(done.text, self._logprobs(tokens), finish_reason(done))
        return self._completion(done.id, [choice], usage(done))

    def piece(self, chunk: Chunk) -> bytes:
        """A piece of the text."""
        return event(
            self._completion(chunk.id, [_choice(chunk.text, self._logprobs(chunk.tokens))])
        )

    def end(self, done: Done) -> bytes:
        """The reason, and, if asked for, the usage."""
        events = event(self._completion(done.id, [_choice("", None, finish_reason(done))]))
        if self.tells_usage:
            events += event(self._completion(done.id, [], usage(done)))
        return events + DONE

    def _completion(
        self, completion_id: str, choices: list[Json], cost: Json | None = None
    ) -> Json:
        return {
            "id": f"cmpl-{completion_id}",
            "created": self.created,
            "model": self.model.name,
            "system_fingerprint": self.model.fingerprint,
            "choices": choices,
            "usage": cost,
            "object": "text_completion",
        }

    def _logprobs(self, tokens: Sequence[TokenText]) -> Json | None:
        """What is known of tokens that follow those before; of other candidates nothing is."""
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


def _choice(text: str, logprobs: Json | None, reason: str | None = None) -> Json:
    return {"text": text, "index": 0, "logprobs": logprobs, "finish_reason": reason}


class OpenAI(DropInApi):
    """The API."""

    name = "openai"
    paths: tuple[str, ...] = ("/v1/completions",)
    other_paths: tuple[str, ...] = ("/v1/models",)

    def read(self, path: str, body: Body, model: ServedModel) -> OpenAICompletion:  # noqa: ARG002 - it has one
        """Raises InputError and ValidationError."""
        refuse(body, _NEUTRAL)
        asked = msgspec.convert(body, OpenAIBody)
        check_top_p(asked.top_p, asked.temperature)
        request = TextRequest(
            prefix=only_prompt(asked.prompt),
            suffix=asked.suffix or "",
            is_raw=asked.suffix is None,
            max_tokens=asked.max_tokens,
            temperature=asked.temperature,
            seed=asked.seed,
            stop=stop_strings(asked.stop),
            tells_tokens=asked.logprobs is not None,
        )
        tells_usage = bool(asked.stream_options.include_usage)
        return OpenAICompletion(request, model, asked.stream, tells_usage, asked.logprobs)

    def refusal(self, status: int, problem: Problem) -> Json:
        """OpenAI's form of an error."""
        kind = error_type(status)
        error = {"message": problem.message, "type": kind, "code": problem.code, "param": None}
        return {"error": error}

    def routes(self, service: CompletionService) -> list[HTTPRouteHandler]:
        """The models: there is one."""
        created = int(time.time())

        def card() -> Json:
            model = ServedModel.of(service)
            return {
                "id": model.name,
                "created": created,
                "owned_by": "foregram",
                # The next three are what others than OpenAI say of their models.
                "context_length": model.context_len,
                "max_model_len": model.context_len,
                "capabilities": {"completion_fim": True, "completion_chat": False},
                "object": "model",
            }

        @get("/v1/models")
        async def models() -> Json:
            """List the model."""
            return {"data": [card()], "object": "list"}

        @get("/v1/models/{model_id:path}")
        async def model(model_id: FromPath[str]) -> Json:
            """Describe the model."""
            found = card()
            if model_id.removeprefix("/") != found["id"]:
                raise NotFoundException(f"this host serves {found['id']} and no other model")
            return found

        return [models, model]


def usage(done: Done) -> Json:
    """The tokens of a completion."""
    return {
        "prompt_tokens": done.cost.prompt_tokens,
        "completion_tokens": done.cost.tokens,
        "total_tokens": done.cost.prompt_tokens + done.cost.tokens,
    }


def finish_reason(done: Done) -> str:
    """`length` where it would have gone on, else `stop`."""
    return "length" if done.finish_reason in _CUT else "stop"


def error_type(status: int) -> str:
    """What OpenAI calls the errors of an HTTP status."""
    return _ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
