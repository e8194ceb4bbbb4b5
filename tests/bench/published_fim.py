"""Qwen's own evaluation of single lines: its prompt, its truncation, and the line that it judges.

From `fim-bench/hm_fim` and `fim-bench/utils.py` of QwenLM/Qwen2.5-Coder at d5ead97, run as
`run_hm_fim.sh` does: greedily, with the text on both sides of the hole.
"""

from dataclasses import replace

import msgspec

from engine.config import StopRules
from engine.model.tokenizer import Tokenizer
from engine.request import CompletionRequest
from tests.bench.scoring import Score, edit_similarity
from tests.bench.tasks import FimTask

_ALL_TOKENS, _ANSWER_TOKENS, _RIGHT_TOKENS = 2048, 64, 512
_LEFT_TOKENS = _ALL_TOKENS - _ANSWER_TOKENS - _RIGHT_TOKENS
# No later line is judged, so the text may end with the first that is not blank.
_RULES = msgspec.structs.replace(StopRules.verbatim(_ANSWER_TOKENS), single_line=True)


def published_request(
    task: FimTask, tokenizer: Tokenizer, wanted: CompletionRequest
) -> CompletionRequest:
    """Lay the prompt out as published, for Qwen's tokens."""
    left = tokenizer.decode(tokenizer.encode(task.prefix)[-_LEFT_TOKENS:])
    right = tokenizer.decode(tokenizer.encode(task.suffix)[:_RIGHT_TOKENS])
    prompt = f"<|fim_prefix|>{left}<|fim_suffix|>{right}<|fim_middle|>"
    return replace(wanted, prefix=prompt, is_raw=True, path=task.path, stop=_RULES)


def published_score(task: FimTask, text: str) -> Score:
    """Judge the first line, or the second behind an empty one, without blanks around it."""
    lines = text.split("\n")
    said = lines[1] if text.startswith(("\n", " \n")) else lines[0]
    said, wanted = said.strip(), task.middle.strip()
    return Score(said == wanted, edit_similarity(said, wanted), None)
