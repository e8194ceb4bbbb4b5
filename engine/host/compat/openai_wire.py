"""The messages of OpenAI's completions: https://platform.openai.com/docs/api-reference/completions."""

import msgspec

from engine.host.compat.text_request import StopStringsField
from engine.host.protocol import Done
from engine.request import FinishReason

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

    prompt: str | list[str | int | list[int]]
    suffix: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    n: int | None = None
    best_of: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: int | None = None
    echo: bool | None = None
    stop: StopStringsField = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    seed: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """Tokens that were read and written."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class LogProbs(msgspec.Struct, frozen=True):
    """The tokens of a text; `text_offset` are the characters of it before each."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]] | None
    text_offset: list[int]


class TextChoice(msgspec.Struct, frozen=True):
    """A text, or a piece of one."""

    text: str
    index: int = 0
    logprobs: LogProbs | None = None
    finish_reason: str | None = None


class TextCompletion(msgspec.Struct, frozen=True):
    """An answer, or a piece of one; only a whole answer and a stream's last piece have a usage."""

    id: str
    created: int
    model: str
    system_fingerprint: str
    choices: list[TextChoice]
    usage: Usage | None = None
    object: str = "text_completion"


class ErrorBody(msgspec.Struct, frozen=True):
    """A refusal."""

    message: str
    type: str
    code: str
    param: str | None = None


class ErrorAnswer(msgspec.Struct, frozen=True):
    """A refusal as it is sent."""

    error: ErrorBody


class ModelCard(msgspec.Struct, frozen=True):
    """A model; the last three fields are what others than OpenAI say of theirs."""

    id: str
    created: int
    owned_by: str
    context_length: int
    max_model_len: int
    capabilities: dict[str, bool]
    object: str = "model"


class ModelList(msgspec.Struct, frozen=True):
    """All models."""

    data: list[ModelCard]
    object: str = "list"


def usage_of(done: Done) -> Usage:
    """The tokens of a completion."""
    read, written = done.cost.prompt_tokens, done.cost.tokens
    return Usage(read, written, read + written)


def finish_reason(done: Done) -> str:
    """`length` where it would have gone on, else `stop`."""
    return "length" if done.finish_reason in _CUT else "stop"


def error_type(status: int) -> str:
    """What OpenAI calls the errors of an HTTP status."""
    if status >= 500:
        return "server_error"
    return _ERROR_TYPES.get(status, "invalid_request_error")
