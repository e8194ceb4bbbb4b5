"""What drafting alone comes to: the scores of the oracle, and their report."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.table import Table

from engine.bench.figures import percentile
from engine.bench.report import figure_table
from engine.drafting.tree import Draft, Source


@dataclass(frozen=True, slots=True)
class OracleCase:
    """How much is drafted a step, and whether the open buffers are known."""

    nodes: int
    open_buffers: bool


CASES = tuple(OracleCase(nodes, known) for known in (False, True) for nodes in (16, 32, 64))


@dataclass(slots=True)
class OracleScore:
    """What a case adds up to over a set."""

    kind: str
    case: OracleCase
    items: int = 0
    tokens: int = 0
    steps: int = 0
    drafted: int = 0
    accepted_by_source: Counter[str] = field(default_factory=Counter)
    draft_us: list[float] = field(default_factory=list)  # of each step but the first
    first_draft_us: list[float] = field(default_factory=list)  # text lookups

    @property
    def tokens_per_step(self) -> float:
        """Tokens emitted by one step, on average."""
        return self.tokens / max(self.steps, 1)

    def count(self, draft: Draft, accepted: np.ndarray, micros: float, *, is_first: bool) -> None:
        """Add a step."""
        self.steps += 1
        self.drafted += len(draft.tokens)
        names = (Source(source).name.lower() for source in draft.sources[accepted])
        self.accepted_by_source.update(names)
        (self.first_draft_us if is_first else self.draft_us).append(micros)

    @property
    def rows_per_step(self) -> float:
        """Drafted tokens and the current one, on average."""
        return 1 + self.drafted / max(self.steps, 1)


def oracle_json(scores: Sequence[OracleScore]) -> dict[str, Any]:
    """One object per kind and case; times in microseconds."""
    return {"cases": [_case_json(score) for score in scores]}


def oracle_table(scores: Sequence[OracleScore]) -> Table:
    """Tokens per step by kind, open buffers and drafted nodes."""
    table = figure_table(
        ["set", "open buffers"],
        ["nodes", "tokens/step", "rows/step", "tree us p50", "p99"],
        title="drafting alone, the target plays the model",
        # A column of sources would fold every other one in a terminal of 80 columns.
        caption="nodes: drafted, the current token's row on top; --json names the sources",
    )
    for score in scores:
        table.add_row(
            f"{score.kind}, {score.items} items",
            "with" if score.case.open_buffers else "without",
            str(score.case.nodes),
            f"{score.tokens_per_step:.2f}",
            f"{score.rows_per_step:.1f}",
            f"{percentile(score.draft_us, 50):.0f}",
            f"{percentile(score.draft_us, 99):.0f}",
        )
    return table


def _case_json(score: OracleScore) -> dict[str, Any]:
    return {
        "kind": score.kind,
        "open_buffers": score.case.open_buffers,
        "nodes": score.case.nodes,
        "items": score.items,
        "tokens": score.tokens,
        "steps": score.steps,
        "tokens_per_step": score.tokens_per_step,
        "rows_per_step": score.rows_per_step,
        "accepted_by_source": dict(score.accepted_by_source.most_common()),
        "draft_us_p50": _known(percentile(score.draft_us, 50)),
        "draft_us_p99": _known(percentile(score.draft_us, 99)),
        "first_draft_us_p50": _known(percentile(score.first_draft_us, 50)),
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
