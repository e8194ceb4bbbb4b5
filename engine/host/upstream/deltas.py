"""What the events of a `/v1/completions` stream say: text, and how probable each of its tokens was.

OpenAI's form of `logprobs` (vLLM, SGLang, TensorRT-LLM) has lists of tokens and of numbers; llama.cpp
writes that of chats, with an object for each token.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from engine.errors import InputError
from engine.host.bodies import decoded
from engine.host.upstream.failures import UpstreamBrokenError, UpstreamError


class SaidToken(NamedTuple):
    """The text that a token adds, maybe none, and the logarithm of its probability."""

    text: str
    log_prob: float
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """What one event adds. `tokens` are its text in as small pieces as are known."""

    tokens: tuple[SaidToken, ...] = ()
    num_tokens: int = 0
    finish_reason: str = ""
    has_log_probs: bool = False
    prompt_tokens: int | None = None
    reused_tokens: int | None = None  # of the prompt


class _Token(msgspec.Struct):
    token: str = ""
    logprob: float | None = None
    id: int | None = None


class _LogProbs(msgspec.Struct):
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    content: list[_Token] | None = None

    def said(self) -> list[SaidToken]:
        if self.content is not None:
            return [SaidToken(one.token, _number(one.logprob), one.id) for one in self.content]
        pairs = zip(self.tokens or (), self.token_logprobs or (), strict=False)
        return [SaidToken(token, _number(log_prob)) for token, log_prob in pairs]


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


def read_delta(data: bytes, where: str) -> Delta:
    """Read the data of an event. Raises UpstreamError where it tells of one."""
    try:
        event = decoded(data, _Event)
    except InputError as error:
        raise UpstreamBrokenError(f"the upstream {where} sent what is no completion") from error
    if event.error:
        said = event.error.get("message") if isinstance(event.error, dict) else event.error
        failed = f"the upstream {where} failed"
        raise UpstreamError(f"{failed}: {str(said)[:300]}", f"{failed} in the middle of an answer")
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
        prompt_tokens=usage.prompt_tokens,
        reused_tokens=details.cached_tokens,
    )


def _pieces(text: str, said: list[SaidToken], *, is_last: bool) -> tuple[SaidToken, ...]:
    """The tokens where they are the text; where they are not, all of it as one.

    At the end, the last of them may be the one that ended the text and is no part of it.
    """
    for tokens in (said, said[:-1] if is_last else said):
        if "".join(token.text for token in tokens) == text and (text or tokens):
            return tuple(tokens)
    if not text and (is_last or not said):
        return ()
    return (SaidToken(text, sum(token.log_prob for token in said)),)


def _number(log_prob: float | None) -> float:
    return -math.inf if log_prob is None else min(log_prob, 0.0)
