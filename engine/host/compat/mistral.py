"""Mistral's `/v1/fim/completions`: a hole is filled, and the text comes as a chat's message.

https://docs.mistral.ai/api/endpoint/fim
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from engine.host.compat.drop_in_api import (
    DONE,
    DropInApi,
    DropInCompletion,
    Json,
    ServedModel,
    event,
)
from engine.host.compat.openai import error_type, finish_reason, usage
from engine.host.compat.text_request import (
    Body,
    StopField,
    TextRequest,
    check_top_p,
    refuse,
    stop_strings,
)
from engine.host.protocol import Done, Problem
from engine.request import Chunk

# Mistral's own has no penalties; Continue may send them.
_NEUTRAL = {"min_tokens": (0,), "presence_penalty": (0,), "frequency_penalty": (0,)}


class FimBody(msgspec.Struct, frozen=True):
    """What is posted; unknown fields are ignored."""

    prompt: str
    suffix: str = ""
    max_tokens: int = 128
    temperature: float = 0.0
    top_p: float = 1.0
    stop: StopField = ""
    random_seed: int | None = None
    stream: bool = False


@dataclass(slots=True)
class FimCompletion(DropInCompletion):
    """A completion as Mistral's clients see it."""

    created: int = field(default_factory=lambda: int(time.time()))

    def answer(self, chunks: Sequence[Chunk], done: Done) -> Json:  # noqa: ARG002 - the end has all text
        """The message with its usage."""
        message = {"message": _message(done.text)}
        return self._completion("chat.completion", done.id, message, done)

    def piece(self, chunk: Chunk) -> bytes:
        """A piece of the message."""
        delta = {"delta": _message(chunk.text)}
        return event(self._completion("chat.completion.chunk", chunk.id, delta))

    def end(self, done: Done) -> bytes:
        """The reason and the usage."""
        delta = {"delta": _message("")}
        return event(self._completion("chat.completion.chunk", done.id, delta, done)) + DONE

    def _completion(
        self, kind: str, completion_id: str, text: Json, done: Done | None = None
    ) -> Json:
        reason = None if done is None else finish_reason(done)
        return {
            "id": completion_id,
            "object": kind,
            "created": self.created,
            "model": self.model.name,
            "choices": [{"index": 0, "finish_reason": reason, **text}],
            "usage": None if done is None else usage(done),
        }


def _message(content: str) -> Json:
    return {"content": content, "role": "assistant"}


class Mistral(DropInApi):
    """The API."""

    name = "mistral"
    paths: tuple[str, ...] = ("/v1/fim/completions",)

    def read(self, path: str, body: Body, model: ServedModel) -> FimCompletion:  # noqa: ARG002 - it has one
        """Raises InputError and ValidationError."""
        refuse(body, _NEUTRAL)
        asked = msgspec.convert(body, FimBody)
        check_top_p(asked.top_p, asked.temperature)
        request = TextRequest(
            prefix=asked.prompt,
            suffix=asked.suffix,
            max_tokens=asked.max_tokens,
            temperature=asked.temperature,
            seed=asked.random_seed,
            stop=stop_strings(asked.stop),
        )
        return FimCompletion(request, model, asked.stream)

    def refusal(self, status: int, problem: Problem) -> Json:
        """Mistral's form of an error."""
        return {
            "message": problem.message,
            "type": error_type(status),
            "code": problem.code,
            "param": None,
            "object": "error",
        }
