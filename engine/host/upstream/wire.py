"""Requests to `/v1/completions`, and the text and log-probabilities in its stream of events."""

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from engine.config import Sampling
from engine.errors import InputError
from engine.host.bodies import decoded
from engine.host.upstream.channel import UpstreamError
from engine.request import TokenText

ServerKind = Literal["llamacpp", "vllm", "sglang", "tensorrt_llm", "other"]
TITLES: dict[ServerKind, str] = {
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt_llm": "TensorRT-LLM",
    "other": "an OpenAI server",
}
_PLAIN = {"repetition_penalty": 1.0, "skip_special_tokens": False}
_OWN: dict[ServerKind, dict[str, Any]] = {  # undo defaults that would change the text
    "llamacpp": {"cache_prompt": True, "top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0},
    "vllm": _PLAIN | {"top_k": -1, "min_p": 0.0, "spaces_between_special_tokens": False},
    "sglang": _PLAIN | {"top_k": -1, "min_p": 0.0},
    "tensorrt_llm": _PLAIN | {"spaces_between_special_tokens": False},
    "other": {},
}
_NEEDED = {"model", "prompt", "stream", "max_tokens", "temperature"}
_SEEDS = 2**31  # every engine accepts seeds below


@dataclass(slots=True)
class BodyWriter:
    """Writes request bodies for one upstream. `special` are names of tokens that end a text."""

    kind: ServerKind
    model_name: str
    special: Sequence[str] = ()
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    refused: set[str] = field(default_factory=set)  # fields that the upstream rejects

    def body(
        self, prompt: str, max_tokens: int, sampling: Sampling, principal: str = ""
    ) -> dict[str, Any]:
        """Return the body of a streaming request."""
        fields: dict[str, Any] = {
            "model": self.model_name,
            "prompt": prompt,
            "stream": True,
            "max_tokens": max_tokens,
            "temperature": sampling.temperature,
            "top_p": 1.0,
            "seed": sampling.seed % _SEEDS,
            "logprobs": 1,
            "stream_options": {"include_usage": True},
            **_OWN[self.kind],
        }
        if self.kind == "llamacpp":  # it would omit them from the text
            fields["preserved_tokens"] = list(self.special)
        if principal and self.kind == "vllm":  # else times would reveal others' prompts
            salt = hashlib.blake2b(principal.encode(), key=self.salt, digest_size=16)
            fields["cache_salt"] = salt.hexdigest()
        return {name: value for name, value in fields.items() if name not in self.refused}

    def leave_out(self, said: str, body: dict[str, Any]) -> bool:
        """Stop sending optional fields that a refusal names; return whether there are any."""
        named = {name for name in body if name not in _NEEDED and name in said}
        self.refused |= named
        return bool(named)


@dataclass(frozen=True, slots=True)
class Delta:
    """The content of one event. `tokens` are its text in the smallest known pieces."""

    tokens: tuple[TokenText, ...] = ()
    num_tokens: int = 0
    finish_reason: str = ""
    has_log_probs: bool = False
    prompt_tokens: int = 0  # as the upstream counts them; 0 if this event does not say
    reused_tokens: int = 0  # prompt tokens found in the upstream's cache


class _Token(msgspec.Struct):
    token: str = ""
    logprob: float | None = None


class _LogProbs(msgspec.Struct):
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    content: list[_Token] | None = None  # llama.cpp's form, as in chats

    def said(self) -> list[TokenText]:
        if self.content is not None:
            return [TokenText(one.token, _number(one.logprob)) for one in self.content]
        pairs = zip(self.tokens or (), self.token_logprobs or (), strict=False)
        return [TokenText(token, _number(log_prob)) for token, log_prob in pairs]


class _Choice(msgspec.Struct):
    text: str | None = None
    logprobs: _LogProbs | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Event(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


def read_delta(data: bytes, upstream: str) -> Delta:
    """Decode the data of an event. Raises UpstreamError if it is invalid or reports an error."""
    try:
        event = decoded(data, _Event)
    except InputError as error:
        told = f"{upstream} sent what is no completion"
        raise UpstreamError("upstream_broken", told) from error
    if event.error:
        said = event.error.get("message") if isinstance(event.error, dict) else event.error
        told = f"{upstream} failed in the middle of an answer"
        raise UpstreamError("upstream_failed", told, said=str(said))
    usage = event.usage or _Usage()
    details = usage.prompt_tokens_details or _PromptDetails()
    choice = event.choices[0] if event.choices else _Choice()
    said = choice.logprobs.said() if choice.logprobs else []
    text, reason = choice.text or "", choice.finish_reason or ""
    return Delta(
        tokens=_pieces(text, said, is_last=bool(reason)),
        num_tokens=len(said) or bool(text),
        finish_reason=reason,
        has_log_probs=bool(said),
        prompt_tokens=usage.prompt_tokens or 0,
        reused_tokens=details.cached_tokens or 0,
    )


def _pieces(text: str, said: list[TokenText], *, is_last: bool) -> tuple[TokenText, ...]:
    """Return the tokens if they make up the text, else the text as one token."""
    for tokens in (said, said[:-1] if is_last else said):  # the last may be the end token
        if "".join(token.text for token in tokens) == text and (text or tokens):
            return tuple(tokens)
    if not text and (is_last or not said):
        return ()
    return (TokenText(text, sum(token.log_prob for token in said)),)


def _number(log_prob: float | None) -> float:
    return -math.inf if log_prob is None else min(log_prob, 0.0)
