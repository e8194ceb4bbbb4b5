"""The model behind an upstream: its identity, and the text it generates for a prompt."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from engine.config import Sampling
from engine.errors import ConfigurationError
from engine.host.upstream.channel import UpstreamChannel, UpstreamError, UpstreamOptionsError
from engine.host.upstream.options import UpstreamOptions
from engine.host.upstream.prompt_writer import FAMILIES, PromptWriter, names_by_model
from engine.host.upstream.wire import TITLES, BodyWriter, Delta, ServerKind, read_delta
from engine.model.prompt import Prompt
from engine.model_names import kind_of, title_of, why_unknown
from engine.request import CompletionRequest

_CONTEXT = 4096  # tokens, if the upstream does not say; all current models have as many
_MOST_SEQUENCES = 64  # if the upstream does not say; one GPU serves as many well
_LEAST_CONTEXT, _LARGEST_CONTEXT = 512, 2**24  # tokens
_LARGEST_SEQUENCES = 1024  # more than any engine runs concurrently
_FEW_NAMES = 3  # prefix, suffix and middle, which every format needs
_LOST = (
    "drafts from open buffers",
    "the promise of equal text whatever is decoded beside it",
    "prompts cached by the host: the upstream's cache is its own",
    "exact token healing: an answer must repeat the piece at the cursor by itself",
    "exact prompt lengths: they are estimated",
)
_LOST_WITHOUT_PROBABILITIES = "`min_confidence`: the upstream tells no probabilities"
_LEAST_PROMPT, _MOST_PROMPT = 1024, 8192  # tokens
_READ_MS = 2400.0  # ms to read a full prompt, as for a local model; most of it is read ahead
_PROBE_WORDS = 96  # random words of three or four tokens each; others might be cached
_PROBE_S = 30.0  # seconds to measure the reading speed


@dataclass(frozen=True, slots=True)
class UpstreamIdentity:
    """An upstream's model by its own name. `context` counts the tokens of prompt and text."""

    kind: ServerKind
    model_name: str
    context: int
    max_sequences: int
    other_names: tuple[str, ...]  # aliases and file names of the model

    @property
    def shown_name(self) -> str:
        """The model's name for people: of a path, the last part."""
        name = self.model_name
        return PurePath(name).name or name if name.startswith("/") else name


async def _identify(channel: UpstreamChannel, options: UpstreamOptions) -> UpstreamIdentity:
    models = await _models(channel)
    owners = {str(model.get("owned_by", "")).lower() for model in models}
    kind: ServerKind = next((one for one in TITLES if one in owners), "other")
    chosen = _chosen(models, options, kind)
    properties = await _told(channel, "/props") if kind == "llamacpp" else {}
    settings = properties.get("default_generation_settings")
    contexts = (
        options.context,
        _positive(settings.get("n_ctx"), _LARGEST_CONTEXT) if isinstance(settings, dict) else None,
        _positive(chosen.get("max_model_len"), _LARGEST_CONTEXT),
    )
    found = UpstreamIdentity(
        kind,
        chosen["id"],
        next((one for one in contexts if one is not None), _CONTEXT),
        _positive(properties.get("total_slots"), _LARGEST_SEQUENCES) or _MOST_SEQUENCES,
        (*_names(chosen, "root"), *_names(properties, "model_path", "model_alias")),
    )
    if found.context < _LEAST_CONTEXT:
        raise UpstreamOptionsError(
            f"{channel.name} has room for {found.context} tokens only; start it with "
            "a longer context"
        )
    return found


async def _special_tokens(
    channel: UpstreamChannel, identity: UpstreamIdentity, options: UpstreamOptions
) -> tuple[str, ...]:
    """Find special tokens by the model's name, or by tokenizing. Raises ConfigurationError."""
    said = [identity.model_name, *identity.other_names]
    if options.known_as:
        if kind_of(options.known_as) == "unknown":
            raise ConfigurationError(why_unknown(options.known_as))
        said = [title_of(options.known_as)]
    # Use only the last part of a path, as folder names are arbitrary.
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
    """Count a text's tokens, with special ones by name, at the upstream; 0 if it cannot."""
    if identity.kind == "llamacpp":
        body: dict[str, Any] = {"content": text, "parse_special": True, "add_special": False}
    else:
        body = {"model": identity.model_name, "prompt": text, "add_special_tokens": False}
    tokens = (await _told(channel, "/tokenize", body)).get("tokens")
    return sum(isinstance(one, int) for one in tokens) if isinstance(tokens, list) else 0


async def _models(channel: UpstreamChannel) -> list[dict[str, Any]]:
    try:
        data = (await channel.ask("/v1/models")).get("data")
    except UpstreamError as error:
        if error.code != "upstream_not_found":
            raise
        return []
    return [one for one in data or () if isinstance(one, dict) and isinstance(one.get("id"), str)]


def _chosen(
    models: list[dict[str, Any]], options: UpstreamOptions, kind: ServerKind
) -> dict[str, Any]:
    """Return the model to request. Raises ConfigurationError if the choice is not clear."""
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
    if kind == "llamacpp" and len(models) == 1:  # it serves its one model under any name
        return models[0] | {"id": options.model_name}
    raise UpstreamOptionsError(
        f"the upstream {options.base_url} has no model {options.model_name}, but {names}"
    )


async def _told(
    channel: UpstreamChannel, path: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return an optional route's answer; empty if the upstream lacks or denies it."""
    try:
        return await channel.ask(path, body)
    except UpstreamError as error:
        if error.code == "upstream_unreachable":
            raise
        return {}


def _names(told: dict[str, Any], *keys: str) -> tuple[str, ...]:
    return tuple(value for key in keys if isinstance(value := told.get(key), str) and value)


def _positive(value: object, most: int) -> int | None:
    return min(value, most) if isinstance(value, int) and value > 0 else None


@dataclass(slots=True)
class UpstreamModel:
    """An upstream's model, ready to generate."""

    channel: UpstreamChannel
    identity: UpstreamIdentity
    writer: PromptWriter
    bodies: BodyWriter
    tells_probabilities: bool = False

    @classmethod
    async def connect(cls, channel: UpstreamChannel, options: UpstreamOptions) -> "UpstreamModel":
        """Identify an upstream and try it out. Raises ForegramError of any kind."""
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
        """Phrases for the features that users lose with an upstream."""
        return _LOST if self.tells_probabilities else (*_LOST, _LOST_WITHOUT_PROBABILITIES)

    def room(self, prompt: Prompt) -> int:
        """Return the number of tokens that fit after a prompt, at least 1."""
        return max(1, self.identity.context - len(prompt.ids))

    async def generated(
        self, prompt: Prompt, max_tokens: int, sampling: Sampling, principal: str = ""
    ) -> AsyncGenerator[Delta]:
        """Yield the text after a prompt; closing this ends the upstream's work."""
        text, may_repeat = self.writer.text_of(prompt), True
        while True:
            body = self.bodies.body(text, max_tokens, sampling, principal)
            try:
                async with aclosing(self.channel.streamed(body)) as events:
                    async for data in events:
                        may_repeat = False
                        yield read_delta(data, self.channel.name)
                return
            except UpstreamError as error:
                if error.code == "upstream_refused" and self.bodies.leave_out(error.said, body):
                    continue
                # The upstream may have closed a kept connection, so try once more.
                if error.code != "upstream_broken" or not may_repeat:
                    raise
                may_repeat = False

    async def _affordable_prompt(self) -> int:
        """Return how many prompt tokens are read in `_READ_MS`, as a power of two."""
        try:
            async with asyncio.timeout(_PROBE_S):
                ms_per_token = min([await self._reading_ms() for _ in range(2)])
        except TimeoutError:
            return _LEAST_PROMPT
        affordable = int(_READ_MS / ms_per_token)
        return max(_LEAST_PROMPT, min(_MOST_PROMPT, 1 << affordable.bit_length() - 1))

    async def _reading_ms(self) -> float:
        text = " ".join(secrets.token_hex(2) for _ in range(_PROBE_WORDS))
        prompt = self.writer.write(CompletionRequest(text, "", is_raw=True), is_healed=False)
        began = time.perf_counter()
        async for delta in self.generated(prompt, 1, Sampling()):
            self.tells_probabilities = self.tells_probabilities or delta.has_log_probs
        return 1000 * (time.perf_counter() - began) / len(prompt.ids)
