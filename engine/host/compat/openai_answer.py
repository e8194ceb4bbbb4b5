"""What OpenAI's completions and its chat have in common."""

import hashlib
from functools import cache

import msgspec

from engine.completer import EngineInfo
from engine.errors import InputError
from engine.host.compat.drop_in_api import DropInCompletion, Json
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


class OpenAIAnswer(DropInCompletion):
    """An answer in a form of OpenAI's."""

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


def check_top_p(top_p: float, temperature: float) -> None:
    """Raise InputError if ignoring `top_p` would change the text."""
    if top_p < 1 and temperature > _SHARP:
        raise InputError(
            f"top_p is not supported above temperature {_SHARP}: leave it out, or let it be 1"
        )


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
