"""What a benchmark asks for. How it is decoded, a request without a text says for a whole run."""

from dataclasses import replace

from engine.bench.task_sets import SetItem
from engine.config import StopRules
from engine.request import CompletionRequest


def request_for(item: SetItem, decoding: CompletionRequest) -> CompletionRequest:
    """Ask for the text at the cursor as an editor would that has the item's buffers open."""
    return replace(
        decoding,
        prefix=item.prefix,
        suffix=item.suffix,
        path=item.path,
        open_buffers=item.open_buffers,
    )


def without_rules(max_tokens: int) -> StopRules:
    """Only end tokens and `max_tokens` end a completion."""
    return StopRules(
        max_tokens=max_tokens,
        suffix=False,
        indentation=False,
        repetition=False,
        max_blank_lines=max_tokens,
    )
