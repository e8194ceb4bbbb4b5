"""A prompt laid out by the caller: names of special tokens in its text are read as these tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.errors import InputError, PromptTooLongError
from engine.model.fim import FimFormat
from engine.model.prompt import Prompt
from engine.model.prompt_window import CHARS_PER_TOKEN
from engine.model.tokenizer import Tokenizer

_CONTEXT_TOKENS = 512  # before the cursor, for drafts; the pool looks at the last 64
_PIECE_CHARS = 10_000  # takes about 10 ms to encode, as `_LONG_CHARS` of the tokenizer


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """A prompt, and for drafts the text around its hole; without a hole, `prefix` is all text."""

    prompt: Prompt
    prefix: str
    suffix: str


def raw_prompt(tokenizer: Tokenizer, fim: FimFormat, text: str, max_tokens: int) -> RawPrompt:
    """Encode a prompt. Raises InputError if it is empty or has more than `max_tokens` tokens."""
    check_length(tokenizer.encode_raw, text, max_tokens)
    ids = tokenizer.encode_raw(text)
    if not ids:
        raise InputError("the prompt is empty")
    if len(ids) > max_tokens:
        raise _too_long(f"{len(ids):,}", max_tokens)
    before, behind = _around(ids, fim)
    prompt = Prompt(
        ids=tuple(ids), dropped=b"", partial=b"", context_ids=tuple(before[-_CONTEXT_TOKENS:])
    )
    return RawPrompt(prompt, tokenizer.decode(before), tokenizer.decode(behind))


def check_length(encode: Callable[[str], Sequence[int]], text: str, max_tokens: int) -> None:
    """Raise PromptTooLongError for a text that is far too long, without minutes of encoding all of it."""
    if len(text) <= CHARS_PER_TOKEN * max_tokens:
        return
    num_tokens = 0
    for start in range(0, len(text), _PIECE_CHARS):
        num_tokens += len(encode(text[start : start + _PIECE_CHARS]))
        if num_tokens > 2 * max_tokens:  # pieces have slightly more tokens than the whole text
            raise _too_long(f"more than {num_tokens // 2:,}", max_tokens)


def _too_long(num_tokens: str, max_tokens: int) -> PromptTooLongError:
    return PromptTooLongError(
        f"the prompt has {num_tokens} tokens, and with an answer at most {max_tokens:,} fit the "
        "model's context"
    )


def _around(ids: list[int], fim: FimFormat) -> tuple[list[int], list[int]]:
    """Return the tokens before the cursor and after it. Without a hole, all are before it."""
    marks = [place for place, one in enumerate(ids) if one in fim.stop_ids]
    ends = [*marks[1:], len(ids)] if marks else []
    parts = {ids[at]: ids[at + 1 : end] for at, end in zip(marks, ends, strict=True)}
    if fim.prefix_id not in parts or fim.suffix_id not in parts:
        return ids, []
    middle = [] if fim.middle_id is None else parts.get(fim.middle_id, [])
    return parts[fim.prefix_id] + middle, parts[fim.suffix_id]
