"""What OpenAI's completions and its chat have in common."""

import hashlib
from dataclasses import dataclass, replace
from functools import cache

import msgspec

from engine.completer import EngineInfo
from engine.errors import InputError
from engine.host.compat.drop_in_api import (
    DropInCompletion,
    Json,
    StopField,
    TextRequest,
    stop_strings,
)
from engine.request import Done, FinishReason

_CUT = (
    FinishReason.MAX_TOKENS,
    FinishReason.CONTEXT_FULL,
    FinishReason.TIME,
    FinishReason.PREFILLED,
)
_SHARP = 0.5  # up to here, tokens that `top_p` would exclude are hardly ever drawn


class StreamOptions(msgspec.Struct, frozen=True):
    """What a stream contains besides its text."""

    include_usage: bool | None = None


class TextBody(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of all kinds of requests; unknown ones are ignored."""

    temperature: float = 0.0
    top_p: float = 1.0
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    stop: StopField = ""
    seed: int | None = None

    def sampled(self, request: TextRequest) -> TextRequest:
        """Add these fields. Raises InputError if ignoring `top_p` would change the text."""
        if self.top_p < 1 and self.temperature > _SHARP:
            raise InputError(
                f"top_p is not supported above temperature {_SHARP}: leave it out, or let it be 1"
            )
        stop = stop_strings(self.stop)
        return replace(request, temperature=self.temperature, seed=self.seed, stop=stop)


@dataclass(slots=True)
class OpenAIAnswer(DropInCompletion):
    """An answer in a form of OpenAI's."""

    tells_usage: bool = False  # at the end of a stream
    num_logprobs: int | None = None  # listed for each token besides its own

    def body(
        self, kind: str, completion_id: str, choices: list[Json], done: Done | None = None
    ) -> Json:
        """Return the fields of all kinds of answers; those of a stream have no usage before the end."""
        return {
            "id": completion_id,
            "object": kind,
            "created": self.created,
            "model": self.model.model,
            "choices": choices,
            "usage": None if done is None else usage(done),
        }


def message(content: str) -> Json:
    """Return an assistant's message."""
    return {"content": content, "role": "assistant"}


@cache
def fingerprint(model: EngineInfo) -> str:
    """Return what changes with the model, its device or its weights' form."""
    form = "\0".join([model.model, model.device, model.dtype])
    return f"fp_{hashlib.sha256(form.encode()).hexdigest()[:10]}"


def usage(done: Done) -> Json:
    """Return the tokens of prompt and answer."""
    return {
        "prompt_tokens": done.cost.prompt_tokens,
        "completion_tokens": done.cost.tokens,
        "total_tokens": done.cost.prompt_tokens + done.cost.tokens,
    }


def finish_reason(done: Done) -> str:
    """Return `length` if the text would go on, else `stop`."""
    return "length" if done.finish_reason in _CUT else "stop"
