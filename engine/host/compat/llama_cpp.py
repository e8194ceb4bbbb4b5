"""llama.cpp's `/infill` and `/completion`, as llama.vim and llama.vscode use them.

Texts are greedy unless a request asks for a temperature: these clients name no other sampler that
would draw. Neither client takes a request back that it sends to a slot before the last one of it is
answered, and two windows use the same slot, so nothing is superseded; a slot only says whose prompt
is cached together. Nobody waits for a prompt that is only read (`n_predict` 0).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from litestar import Request, get
from litestar.handlers import HTTPRouteHandler

from engine.errors import InputError
from engine.host.compat import llama_wire as wire
from engine.host.compat.dialect import Body, Dialect, Exchange, Served, data
from engine.host.compat.llama_wire import selected, stop_type, timings
from engine.host.compat.text_request import TextRequest, only_prompt, refuse_unless, stop_strings
from engine.host.figures import gauges
from engine.host.principals import principal_of
from engine.host.protocol import MAX_TOKENS, Done, Problem
from engine.host.service import CompletionService
from engine.request import Buffer, Chunk, FinishReason
from engine.version import VERSION

_INFILL = "/infill"
_MAX_COMPLETIONS = 4
_NO_NAME = "tmp"  # llama.cpp's own
_MAX_EXTRA_CHARS = 1_000_000  # more than a prompt or a pool is the better for
_DRAWS = ("temperature", "t")  # the sampler without which a temperature says nothing


@dataclass(frozen=True, slots=True)
class LlamaExchange:
    """A completion as llama.cpp's clients see it."""

    request: TextRequest
    asked: wire.LlamaBody
    served: Served

    @property
    def is_streamed(self) -> bool:
        """Whether the client reads chunks."""
        return bool(self.asked.stream)

    def whole(self, chunks: Sequence[Chunk], done: Done) -> object:  # noqa: ARG002 - the end has it all
        """The text with its cost; a list where several were asked for."""
        answer = selected(self._answer(done, done.text), self.asked.response_fields or ())
        return [answer] if (self.asked.n_cmpl or 1) > 1 else answer

    def frame(self, chunk: Chunk) -> bytes:
        """A piece of the text."""
        return data(wire.LlamaChunk(chunk.text, self._slot))

    def last_frames(self, done: Done) -> bytes:
        """Why it ended, and what it cost."""
        return data(selected(self._answer(done, ""), self.asked.response_fields or ()))

    @property
    def _slot(self) -> int:
        return max(self.asked.id_slot or 0, 0)

    def _answer(self, done: Done, content: str) -> wire.LlamaAnswer:
        stop, ending = self.request.stop, stop_type(done)
        return wire.LlamaAnswer(
            content=content,
            id_slot=self._slot,
            model=self.served.model,
            tokens_predicted=done.cost.tokens,
            tokens_evaluated=done.cost.prompt_tokens,
            generation_settings=self._settings(),
            prompt=self.request.prefix if self.request.is_raw else "",
            has_new_line="\n" in done.text,
            truncated=done.finish_reason == FinishReason.CONTEXT_FULL,
            stop_type=ending,
            stopping_word=stop[0] if ending == "word" and len(stop) == 1 else "",
            tokens_cached=max(done.cost.prompt_tokens + done.cost.tokens - 1, 0),
            timings=timings(done),
        )

    def _settings(self) -> wire.LlamaSettings:
        request = self.request
        return wire.LlamaSettings(
            n_ctx=self.served.context_len,
            n_predict=min(request.max_tokens, MAX_TOKENS),
            temperature=request.temperature,
            stop=list(request.stop),
            samplers=["temperature"] if request.temperature else [],
            n_indent=request.min_indent,
            t_max_predict_ms=request.time_limit_ms or 0,
        )


class LlamaCpp(Dialect):
    """The dialect."""

    name = "llama-cpp"
    paths: tuple[str, ...] = (_INFILL, "/completion", "/completions")
    other_paths: tuple[str, ...] = ("/props", "/slots")
    told_by = "`input_prefix`"

    def is_meant(self, body: Body) -> bool:
        """By its prefix; no other dialect has its paths."""
        return "input_prefix" in body

    def read(self, path: str, body: Body, served: Served) -> Exchange:
        """Raises InputError and ValidationError."""
        asked = msgspec.convert(body, wire.LlamaBody)
        _check(asked)
        max_tokens = MAX_TOKENS if asked.n_predict is None else asked.n_predict
        is_infill = path == _INFILL
        request = TextRequest(
            prefix=_prefix(asked) if is_infill else only_prompt(asked.prompt or ""),
            suffix=asked.input_suffix or "" if is_infill else "",
            is_raw=not is_infill,
            buffers=_files(asked.input_extra or ()) if is_infill else (),
            slot=str(asked.id_slot or 0),
            max_tokens=max_tokens if max_tokens >= 0 else MAX_TOKENS,
            temperature=_temperature(asked),
            seed=None if asked.seed == -1 else asked.seed,
            stop=stop_strings(asked.stop),
            min_indent=max(asked.n_indent or 0, 0),
            time_limit_ms=max(asked.t_max_predict_ms or 0, 0) or None,
            is_prefetch=max_tokens == 0,
        )
        return LlamaExchange(request, asked, served)

    def refusal(self, status: int, problem: Problem) -> wire.LlamaError:
        """llama.cpp's form of an error."""
        kind = wire.error_type(status)
        return wire.LlamaError(wire.LlamaErrorBody(status, problem.message, kind))

    def routes(self, service: CompletionService) -> Sequence[HTTPRouteHandler]:
        """What the server is, and how many completions it runs side by side."""

        @get("/props")
        async def props() -> wire.LlamaProps:
            """Describe the host."""
            served = Served.by(service)
            length = served.context_len
            settings = wire.LlamaSettings(length, MAX_TOKENS, 0.0, [], [])
            return wire.LlamaProps(
                wire.LlamaDefaults(length, settings),
                total_slots=service.engine_thread.ready_engine().max_sequences,
                model_path=served.model,
                build_info=f"foregram {VERSION}",
                modalities={"vision": False, "audio": False},
            )

        @get("/slots")
        async def slots(request: Request[Any, Any, Any]) -> list[wire.LlamaSlot]:
            """Say how many are at work for who asks."""
            length = Served.by(service).context_len
            num_running = gauges(service, principal_of(request.scope))["running"]
            return [
                wire.LlamaSlot(number, length, is_processing=number < num_running)
                for number in range(service.engine_thread.ready_engine().max_sequences)
            ]

        return [props, slots]


def _prefix(asked: wire.LlamaBody) -> str:
    """All that stands before the cursor. Raises InputError."""
    if asked.input_prefix is None or asked.input_suffix is None:
        missing = "input_prefix" if asked.input_prefix is None else "input_suffix"
        raise InputError(f'"{missing}" is required')
    return asked.input_prefix + only_prompt(asked.prompt or "")


def _files(extra: Sequence[wire.ExtraFile]) -> tuple[Buffer, ...]:
    """Other files, each with all the pieces of it that were sent; the one taken last is first."""
    texts: dict[str, list[str]] = {}
    room = _MAX_EXTRA_CHARS
    for one in reversed(extra):
        text = one.text or ""
        room -= len(text)
        if room < 0:
            break
        texts.setdefault(one.filename or _NO_NAME, []).append(text)
    return tuple(Buffer(path, "\n".join(reversed(pieces))) for path, pieces in texts.items())


def _temperature(asked: wire.LlamaBody) -> float:
    """0, and below it, is greedy; so is a list of samplers without the one that draws."""
    wanted = asked.temperature or 0.0
    named = asked.samplers
    is_drawn = named is None or any(one in _DRAWS for one in named)
    return max(wanted, 0.0) if is_drawn else 0.0


def _check(asked: wire.LlamaBody) -> None:
    """Refuse by name what would change the answer."""
    if asked.n_cmpl is not None and not 1 <= asked.n_cmpl <= _MAX_COMPLETIONS:
        raise InputError(  # as llama.cpp says it: llama.vscode tells its user what to do by it
            f"Field 'n_cmpl': Value must be between 1 <= value <= {_MAX_COMPLETIONS}, "
            f"but got {asked.n_cmpl}"
        )
    refuse_unless("n_probs", asked.n_probs, 0)
    refuse_unless("grammar", asked.grammar, "")
    refuse_unless("json_schema", asked.json_schema)
    refuse_unless("logit_bias", asked.logit_bias, [], {})
    refuse_unless("lora", asked.lora, [])
    refuse_unless("ignore_eos", asked.ignore_eos, False)  # noqa: FBT003 - the value that changes nothing
    refuse_unless("mirostat", asked.mirostat, 0)
