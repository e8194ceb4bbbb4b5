"""llama.cpp's `/infill` and `/completion`, as llama.vim and llama.vscode use them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler
from msgspec import Meta

from engine import VERSION
from engine.completer import EngineInfo
from engine.errors import InputError
from engine.host.compat.drop_in_api import (
    Body,
    DropInApi,
    DropInCompletion,
    Json,
    StopField,
    TextRequest,
    event,
    only_prompt,
    read_as,
    stop_strings,
)
from engine.host.compat.openai import error_type
from engine.host.protocol import MAX_TOKENS, Integer, Problem
from engine.host.service import CompletionService
from engine.request import Buffer, Chunk, Done, FinishReason

MAX_FIELDS = 256  # fields that a request may select for its answer
_INFILL = "/infill"
_MAX_COMPLETIONS = 4  # in a request, which gets one text anyway; llama.vscode asks for three
_NO_NAME = "tmp"  # llama.cpp's default
_MAX_EXTRA_CHARS = 1_000_000  # characters of other files; more would not help a prompt or pool
_DRAWS = ("temperature", "t")  # names of the sampler that applies the temperature
_STOP_TYPES = {  # all other reasons are a limit, as in llama.cpp
    FinishReason.STOP_STRING: "word",
    FinishReason.END_TOKEN: "eos",
    FinishReason.FIM_TOKEN: "eos",
}
_ERROR_TYPES = {  # beside OpenAI's
    404: "not_found_error",
    429: "unavailable_error",
    501: "not_supported_error",
    503: "unavailable_error",
}


class ExtraFile(msgspec.Struct, frozen=True):
    """A piece of another file."""

    text: str | None = None
    filename: str | None = None


class LlamaBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `/infill` and `/completion`; unknown fields are ignored."""

    input_prefix: str | None = None
    input_suffix: str | None = None
    input_extra: list[ExtraFile] = []
    prompt: str | list[Any] = ""
    n_predict: Integer = -1  # 0 only reads the prompt, as a prefetch; below 0 is no limit
    n_indent: Integer = 0
    n_cmpl: Integer = 1
    t_max_predict_ms: Integer = 0
    id_slot: Integer = 0  # only selects a cached prompt, as two windows may share it
    temperature: Annotated[float, Meta(ge=-1e6, le=1e6)] = 0.0
    samplers: str | list[str] = "t"  # names, or a letter for each; only the temperature draws
    seed: Integer = -1
    stop: StopField = ""
    stream: bool = False
    response_fields: Annotated[list[str], Meta(max_length=MAX_FIELDS)] = []


@dataclass(slots=True)
class _LlamaCompletion(DropInCompletion):
    slot: int = 0
    is_listed: bool = False  # the client asked for several texts
    fields: Sequence[str] = ()  # fields of the answer; empty means all

    def answer(self, chunks: Sequence[Chunk], done: Done) -> object:  # noqa: ARG002 - the end has it all
        answer = selected(self._answer(done, done.text), self.fields)
        return [answer] if self.is_listed else answer

    def piece(self, chunk: Chunk) -> bytes:
        return event(self._piece(chunk.text, is_last=False))

    def end(self, done: Done) -> bytes:
        return event(selected(self._answer(done, ""), self.fields))

    def _piece(self, content: str, *, is_last: bool) -> Json:
        piece: Json = {"content": content, "id_slot": self.slot, "index": 0}
        return piece | {"tokens": [], "stop": is_last}

    def _answer(self, done: Done, content: str) -> Json:
        stop, ending = self.request.stop, _STOP_TYPES.get(done.finish_reason, "limit")
        return self._piece(content, is_last=True) | {
            "model": self.model.model,
            "tokens_predicted": done.cost.tokens,
            "tokens_evaluated": done.cost.prompt_tokens,
            "generation_settings": _settings(self.model, self.request),
            "prompt": self.request.prefix if self.request.is_raw else "",
            "has_new_line": "\n" in done.text,
            "truncated": done.finish_reason == FinishReason.CONTEXT_FULL,
            "stop_type": ending,
            "stopping_word": stop[0] if ending == "word" and len(stop) == 1 else "",
            "tokens_cached": max(done.cost.prompt_tokens + done.cost.tokens - 1, 0),
            "timings": _timings(done),
        }


def _read(path: str, body: Body, model: EngineInfo) -> _LlamaCompletion:
    asked = read_as(LlamaBody, body)
    if not 1 <= asked.n_cmpl <= _MAX_COMPLETIONS:
        raise InputError(  # llama.cpp's wording, by which llama.vscode advises its user
            f"Field 'n_cmpl': Value must be between 1 <= value <= {_MAX_COMPLETIONS}, "
            f"but got {asked.n_cmpl}"
        )
    is_infill = path == _INFILL
    is_drawn = any(one in _DRAWS for one in asked.samplers)
    request = TextRequest(
        prefix=_prefix(asked) if is_infill else only_prompt(asked.prompt),
        suffix=asked.input_suffix or "" if is_infill else "",
        is_raw=not is_infill,
        buffers=_files(asked.input_extra) if is_infill else (),
        slot=str(asked.id_slot),
        max_tokens=asked.n_predict if asked.n_predict >= 0 else MAX_TOKENS,
        temperature=max(asked.temperature, 0.0) if is_drawn else 0.0,
        seed=None if asked.seed == -1 else asked.seed,
        stop=stop_strings(asked.stop),
        min_indent=max(asked.n_indent, 0),
        time_limit_ms=max(asked.t_max_predict_ms, 0) or None,
        is_prefetch=asked.n_predict == 0,
    )
    slot, is_listed = max(asked.id_slot, 0), asked.n_cmpl > 1
    return _LlamaCompletion(request, model, asked.stream, slot, is_listed, asked.response_fields)


def _refusal(status: int, problem: Problem) -> Json:
    """Return llama.cpp's form of an error; older versions of llama.vim need its `content`."""
    kind = _ERROR_TYPES.get(status, error_type(status))
    error = {"code": status, "message": problem.message, "type": kind}
    return {"error": error, "content": ""}


def _routes(service: CompletionService) -> list[HTTPRouteHandler]:
    @get("/props")
    async def props() -> Json:
        engine = service.engine_thread.ready_engine()
        model = engine.info
        params = _settings(model, TextRequest(prefix="", max_tokens=MAX_TOKENS))
        return {
            "default_generation_settings": {"n_ctx": model.context_len, "params": params},
            "total_slots": engine.max_sequences,
            "model_path": model.model,
            "build_info": f"foregram {VERSION}",
            "modalities": {"vision": False, "audio": False},
            "chat_template": "",
        }

    return [props]


def _prefix(asked: LlamaBody) -> str:
    if asked.input_prefix is None or asked.input_suffix is None:
        missing = "input_prefix" if asked.input_prefix is None else "input_suffix"
        raise InputError(f'"{missing}" is required')
    return asked.input_prefix + only_prompt(asked.prompt)


def _files(extra: Sequence[ExtraFile]) -> tuple[Buffer, ...]:
    """Join the pieces of each other file; the file with the latest piece comes first."""
    texts: dict[str, list[str]] = {}
    room = _MAX_EXTRA_CHARS
    for one in reversed(extra):
        text = one.text or ""
        room -= len(text)
        if room < 0:
            break
        texts.setdefault(one.filename or _NO_NAME, []).append(text)
    return tuple(Buffer(path, "\n".join(reversed(pieces))) for path, pieces in texts.items())


def _settings(model: EngineInfo, request: TextRequest) -> Json:
    return {
        "n_ctx": model.context_len,
        "n_predict": min(request.max_tokens, MAX_TOKENS),
        "temperature": request.temperature,
        "stop": request.stop,
        "samplers": ["temperature"] if request.temperature else [],
        "n_indent": request.min_indent,
        "t_max_predict_ms": request.time_limit_ms or 0,
    }


def _timings(done: Done) -> Json:
    read, written = done.cost.prompt_tokens - done.cost.reused_tokens, done.cost.tokens
    prompt_ms, predicted_ms = done.cost.prefill_ms, done.cost.decode_ms
    return {
        "cache_n": done.cost.reused_tokens,
        "prompt_n": read,
        "prompt_ms": prompt_ms,
        "prompt_per_token_ms": _ratio(prompt_ms, read),
        "prompt_per_second": _ratio(1000 * read, prompt_ms),
        "predicted_n": written,
        "predicted_ms": predicted_ms,
        "predicted_per_token_ms": _ratio(predicted_ms, written),
        "predicted_per_second": _ratio(1000 * written, predicted_ms),
        "draft_n": done.cost.rows - done.cost.steps,
        "draft_n_accepted": written - done.cost.accepted_by_source.get("model", 0),
    }


def selected(answer: Json, fields: Sequence[str]) -> Json:
    """Return the text and the named fields, or all if none is named; `a/b` is field b of a."""
    if not fields:
        return answer
    found = {"content": answer["content"]}
    for name in fields:
        value: object = answer
        for part in name.split("/"):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found[name] = value
    return found


def _ratio(amount: float, count: float) -> float:
    return amount / count if count else 0.0


LLAMA_CPP = DropInApi(
    name="llama-cpp",
    paths=(_INFILL, "/completion", "/completions"),
    marker="input_prefix",
    read=_read,
    refusal=_refusal,
    other_paths=("/props",),
    routes=_routes,
)
