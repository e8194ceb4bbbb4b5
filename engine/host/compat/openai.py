"""OpenAI's `/v1/completions` and `/v1/models`.

A prompt with a suffix is a text with a hole and goes through the model's own layout. A prompt
without one is continued as it stands, and the names of special tokens in it are these tokens.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
from litestar import get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from engine.host.compat import openai_wire as wire
from engine.host.compat.dialect import DONE, Body, Dialect, Exchange, Served, data
from engine.host.compat.text_request import (
    TextRequest,
    check_top_p,
    only_prompt,
    refuse_unless,
    stop_strings,
)
from engine.host.protocol import Done, Problem
from engine.host.service import CompletionService
from engine.request import Chunk, TokenText

_MAX_TOKENS = 16  # OpenAI's own default


@dataclass(slots=True)
class OpenAIExchange:
    """A completion as OpenAI's clients see it."""

    request: TextRequest
    is_streamed: bool
    served: Served
    tells_usage: bool = False  # at the end of a stream
    num_logprobs: int | None = None
    created: int = field(default_factory=lambda: int(time.time()))
    _offset: int = 0  # of the next token, in characters

    def whole(self, chunks: Sequence[Chunk], done: Done) -> wire.TextCompletion:
        """The text with its usage."""
        tokens = [token for chunk in chunks for token in chunk.tokens]
        choice = wire.TextChoice(done.text, 0, self._logprobs(tokens), wire.finish_reason(done))
        return self._answer(done.id, [choice], wire.usage_of(done))

    def frame(self, chunk: Chunk) -> bytes:
        """A piece of the text."""
        choice = wire.TextChoice(chunk.text, 0, self._logprobs(chunk.tokens))
        return data(self._answer(chunk.id, [choice]))

    def last_frames(self, done: Done) -> bytes:
        """Why it ended, and, if asked for, the usage."""
        ended = wire.TextChoice("", 0, None, wire.finish_reason(done))
        frames = [data(self._answer(done.id, [ended]))]
        if self.tells_usage:
            frames.append(data(self._answer(done.id, [], wire.usage_of(done))))
        return b"".join([*frames, DONE])

    def _answer(
        self, completion_id: str, choices: list[wire.TextChoice], usage: wire.Usage | None = None
    ) -> wire.TextCompletion:
        served = self.served
        return wire.TextCompletion(
            f"cmpl-{completion_id}", self.created, served.model, served.fingerprint, choices, usage
        )

    def _logprobs(self, tokens: Sequence[TokenText]) -> wire.LogProbs | None:
        """What is known of tokens that follow those before; of other candidates nothing is."""
        if self.num_logprobs is None:
            return None
        offsets = []
        for token in tokens:
            offsets.append(self._offset)
            self._offset += len(token.text)
        top = [{token.text: token.log_prob} for token in tokens] if self.num_logprobs else None
        texts, log_probs = [one.text for one in tokens], [one.log_prob for one in tokens]
        return wire.LogProbs(texts, log_probs, top, offsets)


class OpenAI(Dialect):
    """The dialect."""

    name = "openai"
    paths: tuple[str, ...] = ("/v1/completions",)
    other_paths: tuple[str, ...] = ("/v1/models",)

    def read(self, path: str, body: Body, served: Served) -> Exchange:  # noqa: ARG002 - it has one
        """Raises InputError and ValidationError."""
        asked = msgspec.convert(body, wire.OpenAIBody)
        temperature = asked.temperature or 0.0
        _check(asked, temperature)
        request = TextRequest(
            prefix=only_prompt(asked.prompt),
            suffix=asked.suffix or "",
            is_raw=asked.suffix is None,
            max_tokens=_MAX_TOKENS if asked.max_tokens is None else asked.max_tokens,
            temperature=temperature,
            seed=asked.seed,
            stop=stop_strings(asked.stop),
            tells_tokens=asked.logprobs is not None,
        )
        options = asked.stream_options or wire.StreamOptions()
        return OpenAIExchange(
            request, bool(asked.stream), served, bool(options.include_usage), asked.logprobs
        )

    def refusal(self, status: int, problem: Problem) -> wire.ErrorAnswer:
        """OpenAI's form of an error."""
        kind = wire.error_type(status)
        return wire.ErrorAnswer(wire.ErrorBody(problem.message, kind, problem.code))

    def routes(self, service: CompletionService) -> Sequence[HTTPRouteHandler]:
        """The models: there is one."""
        created = int(time.time())

        @get("/v1/models")
        async def models() -> wire.ModelList:
            """List the model."""
            return wire.ModelList([_card(service, created)])

        @get("/v1/models/{model_id:path}")
        async def model(model_id: FromPath[str]) -> wire.ModelCard:
            """Describe the model."""
            card = _card(service, created)
            if model_id.removeprefix("/") != card.id:
                raise NotFoundException(f"this host serves {card.id} and no other model")
            return card

        return [models, model]


def _card(service: CompletionService, created: int) -> wire.ModelCard:
    served = Served.by(service)
    length = served.context_len
    capabilities = {"completion_fim": True, "completion_chat": False}
    return wire.ModelCard(served.model, created, "foregram", length, length, capabilities)


def _check(asked: wire.OpenAIBody, temperature: float) -> None:
    """Refuse by name what would change the answer."""
    refuse_unless("echo", asked.echo, False)  # noqa: FBT003 - the value that changes nothing
    refuse_unless("n", asked.n, 1)
    refuse_unless("best_of", asked.best_of, 1)
    refuse_unless("logit_bias", asked.logit_bias or None)
    refuse_unless("logprobs", asked.logprobs, 0, 1)
    refuse_unless("presence_penalty", asked.presence_penalty, 0)
    refuse_unless("frequency_penalty", asked.frequency_penalty, 0)
    check_top_p(asked.top_p, temperature)
