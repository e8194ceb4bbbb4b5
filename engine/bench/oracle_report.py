"""What the oracle reports: a table for people, one object for programs."""

import math
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from engine.bench.figures import percentile
from engine.bench.oracle import OracleScore


def oracle_json(scores: Sequence[OracleScore]) -> dict[str, Any]:
    """One object per kind and case; times in microseconds."""
    return {"cases": [_case_json(score) for score in scores]}


def oracle_table(scores: Sequence[OracleScore]) -> Table:
    """Tokens per step by kind, open buffers and drafted nodes."""
    table = Table(
        title="drafting alone, the target plays the model",
        # A column of sources would fold every other one in a terminal of 80 columns.
        caption="nodes: drafted, the current token's row on top; --json names the sources",
    )
    for column in ("set", "open buffers"):
        table.add_column(column)
    for column in ("nodes", "tokens/step", "rows/step", "tree us p50", "p99"):
        table.add_column(column, justify="right")
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
