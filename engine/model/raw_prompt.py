"""A prompt that its caller has laid out: the names of special tokens in its text are these tokens.

Nothing of it is left out and nothing is healed. Where it is a fill-in-the-middle prompt of the
model's own, drafts need to know which text stands before the cursor and which behind it.
"""

from dataclasses import dataclass

from engine.errors import InputError
from engine.model.fim import FimFormat
from engine.model.prompt import Prompt
from engine.model.tokenizer import Tokenizer

_CONTEXT_TOKENS = 512


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """A prompt, and the text around the cursor as far as it can be told."""

    prompt: Prompt
    prefix: str
    suffix: str


def raw_prompt(tokenizer: Tokenizer, fim: FimFormat, text: str, max_tokens: int) -> RawPrompt:
    """Read a prompt. Raises InputError where it is empty or has more than `max_tokens` tokens."""
    ids = tokenizer.encode_raw(text)
    if not ids:
        raise InputError("the prompt is empty")
    if len(ids) > max_tokens:
        raise InputError(
            f"the prompt has {len(ids):,} tokens, and with an answer at most {max_tokens:,} fit the "
            "model's context"
        )
    before, behind = _around(ids, fim)
    prompt = Prompt(
        ids=tuple(ids), dropped=b"", partial=b"", context_ids=tuple(before[-_CONTEXT_TOKENS:])
    )
    return RawPrompt(prompt, tokenizer.decode(before), tokenizer.decode(behind))


def _around(ids: list[int], fim: FimFormat) -> tuple[list[int], list[int]]:
    """The tokens before the cursor and behind it; all stand before it where there is no hole."""
    marks = [place for place, one in enumerate(ids) if one in fim.stop_ids]
    ends = [*marks[1:], len(ids)] if marks else []
    parts = {ids[at]: ids[at + 1 : end] for at, end in zip(marks, ends, strict=True)}
    if fim.prefix_id not in parts or fim.suffix_id not in parts:
        return ids, []
    middle = [] if fim.middle_id is None else parts.get(fim.middle_id, [])
    return parts[fim.prefix_id] + middle, parts[fim.suffix_id]
