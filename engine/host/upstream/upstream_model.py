"""The model behind an upstream: which it is by its own account, and what follows a prompt."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from engine.config import Sampling
from engine.errors import ConfigurationError
from engine.host.upstream.channel import UpstreamChannel, UpstreamError, UpstreamOptionsError
from engine.host.upstream.options import UpstreamOptions
from engine.host.upstream.prompt_writer import (
    FAMILIES,
    PromptWriter,
    UpstreamPrompt,
    names_by_model,
)
from engine.host.upstream.wire import TITLES, BodyWriter, Delta, ServerKind, read_delta
from engine.model.prompt import Prompt
from engine.model_names import kind_of, title_of, why_unknown

_CONTEXT = 4096  # where an upstream does not say: what each of today's models has
_MOST_SEQUENCES = 64  # where it does not say: what one GPU serves well
_LEAST_CONTEXT, _LARGEST_CONTEXT = 512, 2**24
_LARGEST_SEQUENCES = 1024  # more than any engine runs side by side
_FEW_NAMES = 3  # prefix, suffix and middle, without which there is no format
_LOST = (
    "drafts from open buffers",
    "the promise of equal text whatever is decoded beside it",
    "prompts cached by the host: the upstream's cache is its own",
    "exact token healing: an answer must repeat the piece at the cursor by itself",
    "exact prompt lengths: they are estimated",
)
_LOST_WITHOUT_PROBABILITIES = "`min_confidence`: the upstream tells no probabilities"
_LEAST_PROMPT, _MOST_PROMPT = 1024, 8192
_READ_MS = 2400.0  # for a full prompt, as of a model on this machine; most of it is read before
_PROBE_WORDS = 96  # of three or four tokens each
_PROBE_S = 30.0


@dataclass(frozen=True, slots=True)
class UpstreamIdentity:
    """`model_name` is what it calls the model, `context` the tokens of prompt and text together."""

    kind: ServerKind
    model_name: str
    context: int
    max_sequences: int = _MOST_SEQUENCES
    other_names: tuple[str, ...] = ()  # of the model: what its files are called

    @property
    def shown_name(self) -> str:
        """What people read of the model's name: where that is a path, its end."""
        name = self.model_name
        return PurePath(name).name or name if name.startswith("/") else name


async def _identify(channel: UpstreamChannel, options: UpstreamOptions) -> UpstreamIdentity:
    """Ask an upstream what it is. Raises UpstreamError and ConfigurationError."""
    models = await _models(channel)
    owners = {str(model.get("owned_by", "")).lower() for model in models}
    kind: ServerKind = next((one for one in TITLES if one in owners), "other")
    chosen = _chosen(models, options, kind)
    context = _positive(chosen.get("max_model_len"), _LARGEST_CONTEXT) or _CONTEXT
    found = UpstreamIdentity(kind, chosen["id"], context, other_names=_names(chosen, "root"))
    if kind == "llamacpp":
        found = _with_properties(found, await _told(channel, "/props"))
    if options.context is not None:
        found = replace(found, context=options.context)
    if found.context < _LEAST_CONTEXT:
        raise UpstreamOptionsError(
            f"the upstream {channel.where} has room for {found.context} tokens only; start it with "
            "a longer context"
        )
    return found


async def _special_tokens(
    channel: UpstreamChannel, identity: UpstreamIdentity, options: UpstreamOptions
) -> tuple[str, ...]:
    """The names of the model's special tokens: by its name, or by how the upstream reads them.

    Raises ConfigurationError where nothing tells, or where `--model` is not what the upstream runs.
    """
    said = [identity.model_name, *identity.other_names]
    if options.known_as:
        if kind_of(options.known_as) == "unknown":
            raise ConfigurationError(why_unknown(options.known_as))
        said = [title_of(options.known_as)]
    # Of paths the ends: a folder may be called anything.
    if names := names_by_model(*(PurePath(name).name or name for name in said)):
        few = names[:_FEW_NAMES]
        if await _num_tokens(channel, identity, "".join(few)) in (0, len(few)):
            return names
        if options.known_as:
            raise ConfigurationError(
                f"the upstream's model {identity.model_name} has other tokens than "
                f"{options.known_as}; pass --model with the model that it runs"
            )
    for most in (None, _FEW_NAMES):
        for names in (names[:most] for _, names in FAMILIES):
            num_tokens = await _num_tokens(channel, identity, "".join(names))
            if num_tokens == len(names):
                return names
            if not num_tokens:
                break
    raise ConfigurationError(
        f"nothing tells with which special tokens the upstream's model {identity.model_name} fills "
        "in the middle; pass --model with its alias, its hub id, its folder or its .gguf file"
    )


async def _num_tokens(channel: UpstreamChannel, identity: UpstreamIdentity, text: str) -> int:
    """The upstream's tokens of a text, special ones by their names; 0 where it does not tell."""
    if identity.kind == "llamacpp":
        body: dict[str, Any] = {"content": text, "parse_special": True, "add_special": False}
    else:
        body = {"model": identity.model_name, "prompt": text, "add_special_tokens": False}
    tokens = (await _told(channel, "/tokenize", body)).get("tokens")
    return sum(isinstance(one, int) for one in tokens) if isinstance(tokens, list) else 0


async def _models(channel: UpstreamChannel) -> list[dict[str, Any]]:
    try:
        answer = await channel.ask("/v1/models")
    except UpstreamError as error:
        if error.code != "upstream_not_found":
            raise
        return []
    data = answer.get("data") if isinstance(answer, dict) else None
    return [one for one in data or () if isinstance(one, dict) and isinstance(one.get("id"), str)]


def _chosen(
    models: list[dict[str, Any]], options: UpstreamOptions, kind: ServerKind
) -> dict[str, Any]:
    """The model to ask for. Raises ConfigurationError where that is not clear."""
    names = ", ".join(one["id"] for one in models)
    if not options.model_name:
        if len(models) == 1:
            return models[0]
        has = f"has the models {names}" if models else "does not say which model it has"
        raise UpstreamOptionsError(
            f"the upstream {options.base_url} {has}; name one with --upstream-model"
        )
    for one in models:
        if one["id"] == options.model_name:
            return one
    if not models:
        return {"id": options.model_name}
    if kind == "llamacpp" and len(models) == 1:  # it has one, whatever it is called
        return models[0] | {"id": options.model_name}
    raise UpstreamOptionsError(
        f"the upstream {options.base_url} has no model {options.model_name}, but {names}"
    )


async def _told(
    channel: UpstreamChannel, path: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What a route answers that not every upstream has, or shows to everyone."""
    try:
        answer = await channel.ask(path, body)
    except UpstreamError as error:
        if error.code == "upstream_unreachable":
            raise
        return {}
    return answer if isinstance(answer, dict) else {}


def _with_properties(found: UpstreamIdentity, told: dict[str, Any]) -> UpstreamIdentity:
    """What llama.cpp says of itself beside its list of models."""
    settings = told.get("default_generation_settings")
    context = settings.get("n_ctx") if isinstance(settings, dict) else None
    return replace(
        found,
        context=_positive(context, _LARGEST_CONTEXT) or found.context,
        max_sequences=_positive(told.get("total_slots"), _LARGEST_SEQUENCES) or found.max_sequences,
        other_names=(*found.other_names, *_names(told, "model_path", "model_alias")),
    )


def _names(told: dict[str, Any], *keys: str) -> tuple[str, ...]:
    return tuple(value for key in keys if isinstance(value := told.get(key), str) and value)


def _positive(value: object, most: int) -> int | None:
    return min(value, most) if isinstance(value, int) and value > 0 else None


@dataclass(slots=True)
class UpstreamModel:
    """Ready to generate."""

    channel: UpstreamChannel
    identity: UpstreamIdentity
    writer: PromptWriter
    bodies: BodyWriter
    tells_probabilities: bool = False

    @classmethod
    async def connect(cls, channel: UpstreamChannel, options: UpstreamOptions) -> "UpstreamModel":
        """Ask who is there, and try it. Raises ForegramError of every kind."""
        identity = await _identify(channel, options)
        names = await _special_tokens(channel, identity, options)
        writer = PromptWriter(names, identity.model_name)
        bodies = BodyWriter(identity.kind, identity.model_name, writer.special)
        model = cls(channel, identity, writer, bodies)
        affordable = await model._affordable_prompt()
        writer.budget = min(options.prompt_tokens or affordable, identity.context // 2)
        return model

    @property
    def lost(self) -> tuple[str, ...]:
        """What users go without."""
        return _LOST if self.tells_probabilities else (*_LOST, _LOST_WITHOUT_PROBABILITIES)

    def room(self, prompt: UpstreamPrompt) -> int:
        """The tokens that a text may have behind a prompt."""
        return max(1, self.identity.context - len(prompt.laid_out.ids))

    @asynccontextmanager
    async def generated(
        self, prompt: UpstreamPrompt, max_tokens: int, sampling: Sampling, principal: str = ""
    ) -> AsyncIterator[AsyncGenerator[Delta]]:
        """What follows a prompt; leaving the block ends the upstream's work."""
        async with AsyncExitStack() as held:
            is_repeated = False
            while True:
                body = self.bodies.body(prompt.text, max_tokens, sampling, principal)
                try:
                    events = await held.enter_async_context(self.channel.streamed(body))
                    break
                except UpstreamError as error:
                    if error.code == "upstream_refused" and self.bodies.leave_out(error.said, body):
                        continue
                    # A connection that was kept may turn out to be closed.
                    if error.code != "upstream_broken" or is_repeated:
                        raise
                    is_repeated = True
            yield await held.enter_async_context(aclosing(self._deltas(events)))

    async def _deltas(self, events: AsyncGenerator[bytes]) -> AsyncGenerator[Delta]:
        async for data in events:
            yield read_delta(data, self.channel.where)

    async def _affordable_prompt(self) -> int:
        """The tokens of a prompt that are quickly read there: a power of two, 1,024 to 8,192.

        Measured on words that nobody has asked before: the upstream may remember the others.
        """
        try:
            async with asyncio.timeout(_PROBE_S):
                ms_per_token = min([await self._reading_ms() for _ in range(2)])
        except TimeoutError:
            return _LEAST_PROMPT
        affordable = int(_READ_MS / ms_per_token)
        return max(_LEAST_PROMPT, min(_MOST_PROMPT, 1 << affordable.bit_length() - 1))

    async def _reading_ms(self) -> float:
        text = " ".join(secrets.token_hex(2) for _ in range(_PROBE_WORDS))
        ids = tuple(self.writer.codec.encode(text))
        prompt = UpstreamPrompt(text, Prompt(ids, b"", b"", ()))
        began = time.perf_counter()
        async with self.generated(prompt, 1, Sampling()) as deltas:
            async for delta in deltas:
                self.tells_probabilities = self.tells_probabilities or delta.has_log_probs
        return 1000 * (time.perf_counter() - began) / len(ids)
