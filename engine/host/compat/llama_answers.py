"""What a completion is to llama.cpp's clients: its answer, and the fields of it that they want."""

from collections.abc import Sequence

import msgspec

from engine.host.compat import llama_wire as wire
from engine.host.protocol import Done
from engine.request import FinishReason

_ENDED = (FinishReason.END_TOKEN, FinishReason.FIM_TOKEN)  # by the model itself


def timings(done: Done) -> wire.LlamaTimings:
    """What was read and written, and how fast."""
    read, written = done.prompt_tokens - done.reused_tokens, done.tokens
    prompt_ms, predicted_ms = done.timings.prefill_ms, done.timings.decode_ms
    return wire.LlamaTimings(
        cache_n=done.reused_tokens,
        prompt_n=read,
        prompt_ms=prompt_ms,
        prompt_per_token_ms=_ratio(prompt_ms, read),
        prompt_per_second=_ratio(1000 * read, prompt_ms),
        predicted_n=written,
        predicted_ms=predicted_ms,
        predicted_per_token_ms=_ratio(predicted_ms, written),
        predicted_per_second=_ratio(1000 * written, predicted_ms),
        draft_n=done.rows - done.steps,
        draft_n_accepted=written - done.accepted_by_source.get("model", 0),
    )


def stop_type(done: Done) -> str:
    """`eos` where the model ended it, `word` at a stop string; all else is a limit there, too."""
    if done.finish_reason == FinishReason.STOP_STRING:
        return "word"
    return "eos" if done.finish_reason in _ENDED else "limit"


def selected(answer: wire.LlamaAnswer, fields: Sequence[str]) -> object:
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
