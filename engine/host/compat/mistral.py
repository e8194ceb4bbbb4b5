"""Mistral's `/v1/fim/completions`, which fills a hole and returns the text as a chat message.

https://docs.mistral.ai/api/endpoint/fim
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from engine.completer import EngineInfo
from engine.host.compat.drop_in_api import (
    DONE,
    Body,
    DropInApi,
    DropInCompletion,
    Json,
    event,
    read_as,
)
from engine.host.compat.openai import (
    HoleBody,
    error_type,
    finish_reason,
    usage,
)
from engine.host.protocol import Problem
from engine.request import Chunk, Done

# Mistral's API has no penalties, but Continue may send them.
_NEUTRAL = {"min_tokens": (0,), "presence_penalty": (0,), "frequency_penalty": (0,)}


class FimBody(HoleBody, frozen=True):
    """The request body; unknown fields are ignored."""

    prompt: str
    suffix: str = ""
    max_tokens: int = 128
    seed: int | None = msgspec.field(default=None, name="random_seed")


@dataclass(slots=True)
class _FimCompletion(DropInCompletion):
    def answer(self, chunks: Sequence[Chunk], done: Done) -> Json:  # noqa: ARG002 - the end has all text
        return self._completion("", done.id, {"message": _message(done.text)}, done)

    def piece(self, chunk: Chunk) -> bytes:
        return event(self._completion(".chunk", chunk.id, {"delta": _message(chunk.text)}))

    def end(self, done: Done) -> bytes:
        return event(self._completion(".chunk", done.id, {"delta": _message("")}, done)) + DONE

    def _completion(
        self, kind: str, completion_id: str, text: Json, done: Done | None = None
    ) -> Json:
        reason = None if done is None else finish_reason(done)
        return {
            "id": completion_id,
            "object": f"chat.completion{kind}",
            "created": self.created,
            "model": self.model.model,
            "choices": [{"index": 0, "finish_reason": reason, **text}],
            "usage": None if done is None else usage(done),
        }


def _message(content: str) -> Json:
    return {"content": content, "role": "assistant"}


def _read(_path: str, body: Body, model: EngineInfo) -> _FimCompletion:
    asked = read_as(FimBody, body, _NEUTRAL)
    return _FimCompletion(asked.request(), model, asked.stream)


def _refusal(status: int, problem: Problem) -> Json:
    return {
        "message": problem.message,
        "type": error_type(status),
        "code": problem.code,
        "param": None,
        "object": "error",
    }


MISTRAL = DropInApi(
    name="mistral",
    paths=("/v1/fim/completions",),
    marker="prompt",
    read=_read,
    refusal=_refusal,
)
