"""Drafting alone: the target text plays a model that always chooses it. No model runs.

A step emits the drafted tokens that agree with the target, and one more. The recycler has nothing
to recycle, so its share in a real model's steps is missing.
"""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from engine.drafters import Drafters
from engine.drafting.budget import Budget, StepCost
from engine.drafting.drafter import VerifiedStep
from engine.drafting.tree import Draft
from engine.learning import Learning, SweptCosts, fresh_tables
from engine.model.causal_lm import NUM_TOP, StepOutput
from engine.model.constraint import healed_start
from engine.model.fim import find_fim_format
from engine.model.prompt import Prompt, build_prompt
from engine.model.raw_prompt import raw_prompt
from engine.model.token_tree import MAX_ROWS, TokenTree, verify
from engine.model.tokenizer import Tokenizer
from engine.request import CompletionRequest

_PROMPT_TOKENS = 1024  # as an engine's
_MOST_TOKENS = 32_768  # of a recorded prompt
_FREE = {1: 1.0, MAX_ROWS: 1.0}  # all rows cost as much, so each step drafts all that it may


@dataclass(frozen=True, slots=True)
class OracleItem:
    """A request, and the text that answers it."""

    kind: str
    request: CompletionRequest
    target: str


@dataclass(slots=True)
class OracleScore:
    """The steps of one kind of items."""

    items: int = 0
    tokens: int = 0
    steps: int = 0
    accepted: Counter[str] = field(default_factory=Counter)  # drafted tokens by source
    draft_us: list[float] = field(default_factory=list)  # of each step but an item's first

    @property
    def tokens_per_step(self) -> float:
        """Tokens emitted by one step, on average."""
        return self.tokens / max(self.steps, 1)


class Oracle:
    """Plays items; what was accepted is learned from item to item."""

    def __init__(self, tokenizer: Tokenizer, nodes: int) -> None:
        """Draft `nodes` tokens in each step."""
        self._tokenizer = tokenizer
        self._fim = find_fim_format(tokenizer.vocabulary, "oracle")
        budget = Budget(StepCost(_FREE), nodes + 1)
        learning = Learning(fresh_tables(), budget, Path(), SweptCosts(1.0, 1.0, _FREE))
        self._drafters = Drafters(tokenizer, len(tokenizer.vocabulary), learning)
        self._drafters.compile()

    def scores(self, items: Iterable[OracleItem]) -> dict[str, OracleScore]:
        """Play every item; return the scores by kind."""
        scores: dict[str, OracleScore] = {}
        for item in items:
            self._play(item, scores.setdefault(item.kind, OracleScore()))
            self._drafters.states.forget_completions()
        return scores

    def _play(self, item: OracleItem, score: OracleScore) -> None:
        prompt, request = self._laid_out(item.request)
        owed = prompt.dropped.decode("utf-8", "replace")
        target = np.array([*self._tokenizer.encode(owed + item.target), -1])  # nothing follows
        context, played = self._drafters.context(prompt), 0
        constraint = healed_start(prompt.dropped, self._tokenizer.vocabulary)
        score.items += 1
        score.tokens += len(target) - 1
        with self._drafters.drafter(request, prompt) as drafter:
            while played < len(target) - 1:
                began = time.perf_counter()
                draft = drafter.draft(context, constraint, len(target) - 2 - played)
                if played:
                    score.draft_us.append(1e6 * (time.perf_counter() - began))
                step = _verified(context[-1], draft, target[played:])
                drafter.update(step)
                drafter.calibrate(step)
                for token in step.token_ids.tolist():
                    constraint = constraint.after(token) if constraint else None
                score.steps += 1
                score.accepted.update(source.name.lower() for source in step.sources)
                context += step.token_ids.tolist()
                played += len(step.token_ids)

    def _laid_out(self, request: CompletionRequest) -> tuple[Prompt, CompletionRequest]:
        tokenizer, fim = self._tokenizer, self._fim
        if request.is_raw:
            raw = raw_prompt(tokenizer, fim, request.prefix, _MOST_TOKENS)
            return raw.prompt, replace(request, prefix=raw.prefix, suffix=raw.suffix)
        text = request.prefix, request.suffix
        return build_prompt(tokenizer, fim, *text, request.layout, _PROMPT_TOKENS), request


def _verified(current: int, draft: Draft, target: np.ndarray) -> VerifiedStep:
    """The step in which the model's choices are the target's tokens."""
    tree = TokenTree(
        np.append(np.int64(current), draft.tokens), np.append(np.int32(-1), draft.parents + 1)
    )
    chosen = target[np.minimum(tree.depths, len(target) - 1)]
    path = verify(tree.token_ids, tree.parents, chosen)
    nothing = np.full((tree.num_rows, NUM_TOP), -1)
    output = StepOutput(chosen, path, np.zeros(tree.num_rows), lambda: nothing, 1.0, tree.num_rows)
    return VerifiedStep(tree, draft, output)
