"""Single steps of a model: the logits of its rows, and reading a prompt."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from engine.config import Sampling
from engine.decoder import Decoder
from engine.drafting.drafter import Drafter, VerifiedStep
from engine.engine import step
from engine.model.causal_lm import CausalModel, StepInput, prefill, run_step
from engine.model.constraint import Constraint
from engine.model.token_tree import MAX_ROWS, TokenTree


def logits_of(model: CausalModel, slot: Any, tree: TokenTree) -> torch.Tensor:
    """Return the logits of every row, float32 [rows, vocab]; nothing is committed yet."""
    logits = run_step(model, StepInput(slot, tree, wants_logits=True)).logits
    assert logits is not None
    return torch.from_numpy(logits)


def logits_behind(model: CausalModel, prompt: Sequence[int], tree: TokenTree) -> torch.Tensor:
    """Return the logits of a tree's rows behind a prompt, in a slot of its own."""
    slot = model.new_slot(len(prompt) + MAX_ROWS)
    prefill(model, slot, prompt)
    return logits_of(model, slot, tree)


def read(model: CausalModel, slot: Any, token_ids: Sequence[int]) -> torch.Tensor:
    """Commit tokens; return the logits of the last one, float32 [1, vocab]."""
    prefill(model, slot, token_ids[:-1])
    logits = logits_of(model, slot, TokenTree.chain(token_ids[-1:]))
    slot.commit([0])
    return logits


def decoder_behind(
    slot: Any,
    drafter: Drafter,
    sampling: Sampling,
    prompt: Sequence[int],
    count: int,
    constraint: Constraint | None = None,
) -> Decoder:
    """Return a decoder of `count` tokens behind a prompt; the slot holds all but its last token."""
    return Decoder(
        slot=slot,
        drafter=drafter,
        sampling=sampling,
        constraint=constraint,
        current=prompt[-1],
        context=list(prompt),
        max_tokens=count,
        on_step=lambda _: False,
    )


def written_behind(
    model: CausalModel, prompt: Sequence[int], drafter: Drafter, sampling: Sampling, count: int
) -> list[int]:
    """Return the tokens that a model writes behind a prompt, in a slot of its own."""
    slot = model.new_slot(len(prompt) + count + MAX_ROWS)
    prefill(model, slot, prompt[:-1])
    return text_of(decoded(model, decoder_behind(slot, drafter, sampling, prompt, count)))


def text_of(steps: Iterable[VerifiedStep]) -> list[int]:
    return [int(token) for one in steps for token in one.token_ids]


def decoded(model: CausalModel, decoder: Any) -> list[VerifiedStep]:
    """Return all steps of a decoder, from the product's own loop."""
    steps: list[VerifiedStep] = []
    on_step: Callable[[VerifiedStep], bool] = decoder.on_step

    def noted(verified: VerifiedStep) -> bool:
        steps.append(verified)
        return on_step(verified)

    decoder.on_step = noted
    while not decoder.is_done:
        step(model, [decoder])
    return steps
