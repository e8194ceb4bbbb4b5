"""Mistral's `/v1/fim/completions`: a hole is filled, and the text comes as a chat's message."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from engine.host.compat.dialect import DONE, Body, Dialect, Exchange, Served, data
from engine.host.compat.openai_wire import Usage, error_type, finish_reason, usage_of
from engine.host.compat.text_request import (
    StopStringsField,
    TextRequest,
    check_top_p,
    refuse_unless,
    stop_strings,
)
from engine.host.protocol import Done, Problem
from engine.request import Chunk

_MAX_TOKENS = 128


class FimBody(msgspec.Struct, frozen=True):
    """What is posted; unknown fields are ignored. https://docs.mistral.ai/api/endpoint/fim."""

    prompt: str
    suffix: str | None = None
    max_tokens: int | None = None
    min_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: StopStringsField = None
    random_seed: int | None = None
    presence_penalty: float | None = None  # Mistral's own has none; Continue may send them
    frequency_penalty: float | None = None
    stream: bool | None = None


class FimMessage(msgspec.Struct, frozen=True):
    """The text that fills the hole, or a piece of it."""

    content: str
    role: str = "assistant"


class FimChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole message, or, in a stream, the next piece."""

    index: int
    finish_reason: str | None
    message: FimMessage | None = None
    delta: FimMessage | None = None


class FimCompletion(msgspec.Struct, frozen=True):
    """An answer, or a piece of one; of a stream only the last piece has a usage."""

    id: str
    object: str
    created: int
    model: str
    choices: list[FimChoice]
    usage: Usage | None = None


class FimError(msgspec.Struct, frozen=True):
    """A refusal."""

    message: str
    type: str
    code: str
    param: str | None = None
    object: str = "error"


@dataclass(frozen=True, slots=True)
class FimExchange:
    """A completion as Mistral's clients see it."""

    request: TextRequest
    is_streamed: bool
    served: Served
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, chunks: Sequence[Chunk], done: Done) -> FimCompletion:  # noqa: ARG002 - the end has all text
        """The message with its usage."""
        choice = FimChoice(0, finish_reason(done), message=FimMessage(done.text))
        return self._answer("chat.completion", done.id, choice, usage_of(done))

    def frame(self, chunk: Chunk) -> bytes:
        """A piece of the message."""
        choice = FimChoice(0, None, delta=FimMessage(chunk.text))
        return data(self._answer("chat.completion.chunk", chunk.id, choice))

    def last_frames(self, done: Done) -> bytes:
        """Why it ended, and its usage."""
        choice = FimChoice(0, finish_reason(done), delta=FimMessage(""))
        answer = self._answer("chat.completion.chunk", done.id, choice, usage_of(done))
        return data(answer) + DONE

    def _answer(
        self, kind: str, completion_id: str, choice: FimChoice, usage: Usage | None = None
    ) -> FimCompletion:
        return FimCompletion(completion_id, kind, self.created, self.served.model, [choice], usage)


class Mistral(Dialect):
    """The dialect."""

    name = "mistral"
    paths: tuple[str, ...] = ("/v1/fim/completions",)

    def read(self, path: str, body: Body, served: Served) -> Exchange:  # noqa: ARG002 - it has one
        """Raises InputError and ValidationError."""
        asked = msgspec.convert(body, FimBody)
        temperature = asked.temperature or 0.0
        refuse_unless("min_tokens", asked.min_tokens, 0)
        refuse_unless("presence_penalty", asked.presence_penalty, 0)
        refuse_unless("frequency_penalty", asked.frequency_penalty, 0)
        check_top_p(asked.top_p, temperature)
        request = TextRequest(
            prefix=asked.prompt,
            suffix=asked.suffix or "",
            max_tokens=_MAX_TOKENS if asked.max_tokens is None else asked.max_tokens,
            temperature=temperature,
            seed=asked.random_seed,
            stop=stop_strings(asked.stop),
        )
        return FimExchange(request, bool(asked.stream), served)

    def refusal(self, status: int, problem: Problem) -> FimError:
        """Mistral's form of an error."""
        return FimError(problem.message, error_type(status), problem.code)
