"""The oracle: plain decoding by transformers' own forward, without a cache."""

from collections.abc import Sequence

import torch
import transformers


@torch.no_grad()
def reference_logits(model: transformers.PreTrainedModel, token_ids: Sequence[int]) -> torch.Tensor:
    """Return logits [tokens, vocab] for `token_ids`, read from scratch without a cache."""
    output = model(input_ids=torch.tensor([list(token_ids)]), use_cache=False)
    logits: torch.Tensor = output.logits[0]
    return logits


def greedy(model: transformers.PreTrainedModel, token_ids: Sequence[int], count: int) -> list[int]:
    """Choose the `count` tokens that follow `token_ids`; the lowest id wins a tie."""
    text = list(token_ids)
    for _ in range(count):
        text.append(int(reference_logits(model, text)[-1].argmax()))
    return text[len(token_ids) :]
