"""The JSON of llama.cpp's server. Fields that are not here change nothing, and are not read."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from engine.host.protocol import Done, Integer
from engine.request import FinishReason

MAX_FIELDS = 256  # that an answer is to have
Number = Annotated[float, Meta(ge=-1e6, le=1e6)]
_ENDED = (FinishReason.END_TOKEN, FinishReason.FIM_TOKEN)  # by the model itself


class ExtraFile(msgspec.Struct, frozen=True):
    """A piece of another file; llama.vim and llama.vscode also say when they took it."""

    text: str | None = None
    filename: str | None = None


class LlamaBody(msgspec.Struct, frozen=True, kw_only=True):
    """What `/infill` and `/completion` are asked."""

    input_prefix: str | None = None
    input_suffix: str | None = None
    input_extra: list[ExtraFile] | None = None
    prompt: str | list[Any] | None = None
    n_predict: Integer | None = None  # 0: the prompt is only read; below 0: no limit
    n_indent: Integer | None = None
    n_cmpl: Integer | None = None
    t_max_predict_ms: Integer | None = None
    id_slot: Integer | None = None
    temperature: Number | None = None
    samplers: str | list[str] | None = None  # names, or each one's letter
    seed: Integer | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    response_fields: Annotated[list[str], Meta(max_length=MAX_FIELDS)] | None = None
    # What would make another text:
    n_probs: Integer | None = None
    grammar: str | None = None
    json_schema: Any = None
    logit_bias: Any = None
    lora: Any = None
    ignore_eos: bool | None = None
    mirostat: Integer | None = None


class LlamaTimings(msgspec.Struct, frozen=True):
    """What was read and written, and how fast."""

    cache_n: int
    prompt_n: int
    prompt_ms: float
    prompt_per_token_ms: float
    prompt_per_second: float
    predicted_n: int
    predicted_ms: float
    predicted_per_token_ms: float
    predicted_per_second: float
    draft_n: int
    draft_n_accepted: int


class LlamaSettings(msgspec.Struct, frozen=True):
    """How an answer was made."""

    n_ctx: int
    n_predict: int
    temperature: float
    stop: list[str]
    samplers: list[str]
    n_indent: int = 0
    t_max_predict_ms: int = 0


class LlamaAnswer(msgspec.Struct, frozen=True):
    """A completion as a whole, or the end of a stream, whose `content` was sent before."""

    content: str
    id_slot: int
    model: str
    tokens_predicted: int
    tokens_evaluated: int
    generation_settings: LlamaSettings
    prompt: str
    has_new_line: bool
    truncated: bool
    stop_type: str
    stopping_word: str
    tokens_cached: int
    timings: LlamaTimings
    index: int = 0
    tokens: list[int] = []
    stop: bool = True


class LlamaChunk(msgspec.Struct, frozen=True):
    """A piece of a stream."""

    content: str
    id_slot: int
    index: int = 0
    tokens: list[int] = []
    stop: bool = False


class LlamaErrorBody(msgspec.Struct, frozen=True):
    """A refusal; `code` is the HTTP status."""

    code: int
    message: str
    type: str


class LlamaError(msgspec.Struct, frozen=True):
    """A refusal as it is sent: without a `content` llama.vim's older versions break."""

    error: LlamaErrorBody
    content: str = ""


class LlamaSlot(msgspec.Struct, frozen=True):
    """A place in which a completion runs. What runs there is nobody else's to know."""

    id: int
    n_ctx: int
    is_processing: bool
    speculative: bool = True


class LlamaDefaults(msgspec.Struct, frozen=True):
    """What holds where a request says nothing."""

    n_ctx: int
    params: LlamaSettings


class LlamaProps(msgspec.Struct, frozen=True):
    """What the server is."""

    default_generation_settings: LlamaDefaults
    total_slots: int
    model_path: str
    build_info: str
    modalities: dict[str, bool]
    chat_template: str = ""


_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "unavailable_error",
    501: "not_supported_error",
    503: "unavailable_error",
}


def error_type(status: int) -> str:
    """What llama.cpp calls the errors of an HTTP status."""
    return _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")


def timings(done: Done) -> LlamaTimings:
    """What was read and written, and how fast."""
    cost = done.cost
    read, written = cost.prompt_tokens - cost.reused_tokens, cost.tokens
    prompt_ms, predicted_ms = cost.prefill_ms, cost.decode_ms
    return LlamaTimings(
        cache_n=cost.reused_tokens,
        prompt_n=read,
        prompt_ms=prompt_ms,
        prompt_per_token_ms=_ratio(prompt_ms, read),
        prompt_per_second=_ratio(1000 * read, prompt_ms),
        predicted_n=written,
        predicted_ms=predicted_ms,
        predicted_per_token_ms=_ratio(predicted_ms, written),
        predicted_per_second=_ratio(1000 * written, predicted_ms),
        draft_n=cost.rows - cost.steps,
        draft_n_accepted=written - cost.accepted_by_source.get("model", 0),
    )


def stop_type(done: Done) -> str:
    """`eos` where the model ended it, `word` at a stop string; all else is a limit there, too."""
    if done.finish_reason == FinishReason.STOP_STRING:
        return "word"
    return "eos" if done.finish_reason in _ENDED else "limit"


def selected(answer: LlamaAnswer, fields: Sequence[str]) -> object:
    """The answer, or the fields of it that are named, and its text in any case.

    `a/b` is the field b of the field a, and keeps this name. What is not there is left out.
    """
    if not fields:
        return answer
    whole = msgspec.to_builtins(answer)
    found = {name: value for name in fields if (value := _field(whole, name)) is not None}
    return {"content": answer.content} | found


def _field(answer: object, name: str) -> object:
    value = answer
    for part in name.split("/"):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _ratio(amount: float, count: float) -> float:
    return amount / count if count else 0.0
