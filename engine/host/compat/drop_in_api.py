"""The interface of a drop-in API, which reads a body into a request and writes the answer."""

import secrets
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec
from litestar.handlers import HTTPRouteHandler

from engine.completer import EngineInfo
from engine.config import Sampling, StopRules
from engine.errors import InputError
from engine.host.protocol import (
    MAX_ANSWER_TOKENS,
    MAX_SNIPPETS,
    CompleteEvent,
    Problem,
)
from engine.host.service import CompletionJob, CompletionService
from engine.request import (
    MAX_SNIPPET_CHARS,
    Buffer,
    ChatMessage,
    Chunk,
    CompletionRequest,
    Done,
    Snippet,
)

_NEUTRAL: dict[str, tuple[object, ...]] = {  # llama.cpp's fields, which clients send to any API
    "n_probs": (0,),
    "grammar": ("",),
    "json_schema": (),
    "logit_bias": ([], {}),
    "lora": ([],),
    "ignore_eos": (False,),
    "mirostat": (0,),
}
_GREATEST_SEED = 2**63 - 1  # the largest that `Sampling` allows; others lose their higher bits
DONE = b"data: [DONE]\n\n"
Json = dict[str, Any]
Body = Mapping[str, Any]  # a JSON object without nulls at its top level
StopField = str | list[str]
_Kind = TypeVar("_Kind", bound=msgspec.Struct)
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest:
    """Text around a cursor, ended by the rules of editor completions, or a raw prompt."""

    prefix: str
    suffix: str = ""
    is_raw: bool = False  # the prefix is a whole prompt, with special tokens by name
    messages: tuple[ChatMessage, ...] = ()  # a chat to answer, instead of text around a cursor
    copied: str = ""  # a text that the answer mostly repeats
    path: str = ""
    snippets: tuple[Snippet, ...] = ()  # from other files, best first
    buffers: tuple[Buffer, ...] = ()  # other files, from which the host chooses snippets
    slot: str = ""  # requests with the same slot and no path share a cached prompt
    max_tokens: int = 128  # up to the host's bound; 0 only reads the prompt, for later
    temperature: float = 0.0
    seed: int | None = None  # None draws another text each time
    stop: tuple[str, ...] = ()
    min_indent: int = 0  # least characters of white space before each line but the first
    time_limit_ms: int | None = None  # checked at line ends
    tells_tokens: bool = False  # chunks contain their tokens and log-probabilities
    is_prefetch: bool = False

    @property
    def has_crlf(self) -> bool:
        """Whether the answer's lines end with CR LF, as in the file."""
        return not self.is_verbatim and "\r\n" in self.prefix + self.suffix

    @property
    def is_verbatim(self) -> bool:
        """Whether the model's text is passed on as it is."""
        return self.is_raw or bool(self.messages)

    def events(self, service: CompletionService, principal: str) -> AsyncGenerator[CompleteEvent]:
        """Start the completion. Raises InputError, ConfigurationError and RefusalError at once."""
        client = f"drop-in\0{principal}"
        request = self._completion(client)

        def events_of(request: CompletionRequest) -> AsyncGenerator[CompleteEvent]:
            return CompletionJob(
                service=service,
                principal=principal,
                client=client,
                document=uuid.uuid4().hex,  # so that no request supersedes another
                make=lambda: request,
                is_prefetch=self.is_prefetch,
                is_patient=bool(self.messages),
            ).events()

        another = replace(request, sampling=request.sampling.another)
        return _answered(events_of(request), lambda: events_of(another))

    def _completion(self, client: str) -> CompletionRequest:
        seed = secrets.randbits(63) if self.seed is None else self.seed & _GREATEST_SEED
        max_tokens = min(self.max_tokens, MAX_ANSWER_TOKENS)  # the service has closer bounds
        if self.is_verbatim:
            rules = StopRules.verbatim(max_tokens, self.stop)
        else:
            rules = StopRules(max_tokens, strings=tuple(map(_lf, self.stop)))
        return CompletionRequest(
            prefix=self.prefix if self.is_raw else _lf(self.prefix),
            suffix=_lf(self.suffix),
            path=self.path,
            open_buffers=tuple(replace(one, text=_lf(one.text)) for one in self.buffers),
            repository=tuple(map(_bounded, self.snippets[:MAX_SNIPPETS])),
            workspace=f"{client}\0",
            cache_key=f"{client}\0{self.path or self.slot}",
            sampling=Sampling(temperature=self.temperature, seed=seed),
            stop=msgspec.structs.replace(
                rules, min_indent=self.min_indent, time_limit_ms=self.time_limit_ms
            ),
            is_raw=self.is_raw,
            messages=self.messages,
            copied=self.copied,
            tells_tokens=self.tells_tokens,
        )


async def _answered(
    events: AsyncGenerator[CompleteEvent], others: Callable[[], AsyncGenerator[CompleteEvent]]
) -> AsyncGenerator[CompleteEvent]:
    """Yield the events; of a text that only repeats the suffix, which has no chunks, the others."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Done) and event.is_repeat:
                break
            yield event
        else:
            return
    async with aclosing(others()) as events:
        async for event in events:
            yield event


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _bounded(snippet: Snippet) -> Snippet:
    text = _lf(snippet.text)
    if len(text) > MAX_SNIPPET_CHARS:
        text = text[-MAX_SNIPPET_CHARS:].partition("\n")[2]
    return Snippet(snippet.path, text)


@dataclass(slots=True)
class DropInCompletion:
    """One request and the form of its answer: whole, or as server-sent events."""

    request: TextRequest
    model: EngineInfo
    is_streamed: bool = False
    created: int = field(init=False, default_factory=lambda: int(time.time()))  # seconds since 1970

    def answer(self, chunks: Sequence[Chunk], done: Done) -> object:
        """Return the whole answer for encoding as JSON. `chunks` hold the text in pieces."""
        raise NotImplementedError

    def piece(self, chunk: Chunk) -> bytes:
        """Return the event for a piece of the text."""
        raise NotImplementedError

    def end(self, done: Done) -> bytes:
        """Return the last events of a stream."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class DropInApi:
    """A drop-in API; `read` takes a path, a body and the model, and raises InputError."""

    name: str  # its name for `serve --api`
    paths: tuple[str, ...]  # for completions
    marker: str  # a field that no other API at the same path has
    read: Callable[[str, Body, EngineInfo], DropInCompletion]
    refusal: Callable[[int, Problem], object]  # an error answer as JSON, also from `routes`
    other_paths: tuple[str, ...] = ()  # includes all paths below them
    routes: Callable[[CompletionService], list[HTTPRouteHandler]] = lambda _: []
    health: Callable[[EngineInfo], Json] = lambda _: {}  # more fields for `/v1/health`

    def has(self, path: str) -> bool:
        """Whether a path belongs to this API."""
        places = (*self.paths, *self.other_paths)
        return any(path == place or path.startswith(f"{place}/") for place in places)


def event(content: object) -> bytes:
    """Return a server-sent event with JSON data, which contains no line ends."""
    return b"data: " + _encode(content) + b"\n\n"


def read_as(kind: type[_Kind], body: Body, neutral: Mapping[str, Sequence[object]] = {}) -> _Kind:
    """Convert a body to `kind`. Raises InputError, also for unsupported fields of any API."""
    refuse(body, {**_NEUTRAL, **neutral})
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from error


def refuse(body: Body, neutral: Mapping[str, Sequence[object]]) -> None:
    """Raise InputError for an unsupported field, unless its value is `neutral`."""
    for name, values in neutral.items():
        if name in body and body[name] not in values:
            told = " or ".join(_encode(one).decode() for one in values)
            otherwise = f", or let it be {told}" if told else ""
            raise InputError(f"{name} is not supported: leave it out{otherwise}")


def stop_strings(stop: StopField) -> tuple[str, ...]:
    """Return the stop strings without empty ones, which other servers ignore, too."""
    return tuple(one for one in ([stop] if isinstance(stop, str) else stop) if one)


def only_prompt(prompt: str | Sequence[object]) -> str:
    """Return the only prompt. Raises InputError for several prompts, and for token ids."""
    texts: Sequence[object] = [prompt] if isinstance(prompt, str) else prompt
    if not all(isinstance(one, str) for one in texts):
        raise InputError("prompt holds token ids, which are not supported: send its text")
    if len(texts) != 1:
        raise InputError(f"prompt holds {len(texts)} prompts: ask for each in a request of its own")
    return str(texts[0])
