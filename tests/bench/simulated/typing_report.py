"""The figures of `python -m tests.bench typing` for people and for programs."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from engine.bench.report import plain
from tests.bench.simulated.sides import AssistedTrace
from tests.bench.simulated.typing_figures import TypingFigures, saved, saved_ratio, typing_figures

_BARS = (  # figures in which sides are compared, as ratios
    "keystrokes_saved",
    "time_against_pure",
    "begun_to_shown_ms_p50",
    "wrong_share",
    "cpu_s_per_trace",
)


def typing_json(runs: Mapping[str, Sequence[AssistedTrace]], seed: int) -> dict[str, Any]:
    """Return figures by side, the first side's over each other's, and every trace, without null."""
    figures = {name: asdict(typing_figures(some)) for name, some in runs.items()}
    first, *others = figures
    return {
        "seed": seed,
        "load": round(os.getloadavg()[1], 2),
        "sides": plain(figures),
        "ratios": plain({name: _ratios(figures[first], figures[name]) for name in others}),
        "keystrokes_saved_ratio_95": plain({n: saved_ratio(runs[first], runs[n]) for n in others}),
        "traces": plain({name: list(map(_trace, some)) for name, some in runs.items()}),
    }


def typing_table(runs: Mapping[str, Sequence[AssistedTrace]]) -> Table:
    sides = [typing_figures(some) for some in runs.values()]
    one = sides[0]
    caption = (
        f"{one.target_keys} keys, {one.pure_s:.0f} s for one who types all of it; "
        f"load {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores{_compared(runs)}"
    )
    table = Table("figure", title=f"{one.traces} traces typed", caption=caption)
    for name in runs:
        table.add_column(name, justify="right")
    for row in zip(*(_cells(figures).items() for figures in sides), strict=True):
        table.add_row(row[0][0], *(value for _, value in row))
    return table


def _cells(figures: TypingFigures) -> dict[str, str]:
    one = figures
    within = " / ".join(f"{share:.0%}" for share in one.keys_with_ghost.values())
    taken = " / ".join(f"{one.accepts.get(kind, 0)}" for kind in ("all", "line", "word"))
    memory = f"{one.suggestions} ({one.from_memory})"
    return {
        "keystrokes saved, all / median trace": f"{one.keystrokes_saved:.1%} / "
        f"{one.keystrokes_saved_p50:.1%}",
        "time against pure typing": f"{one.time_against_pure:.1%}",
        "key to ghost text, ms p50 / p90": f"{one.key_to_ghost_ms_p50:.0f} / "
        f"{one.key_to_ghost_ms_p90:.0f}",
        "generation begun to shown, ms p50 / p90": f"{one.begun_to_shown_ms_p50:.0f} / "
        f"{one.begun_to_shown_ms_p90:.0f}",
        f"keys with ghost text within {' / '.join(one.keys_with_ghost)} ms": within,
        "gap before ghost text, s p50 / p90": f"{one.gap_s_p50:.2f} / {one.gap_s_p90:.2f}",
        "suggestions (from memory)": memory,
        "characters shown, wrong": f"{one.shown_chars:,}, {one.wrong_share:.1%}",
        "accepts: all / line / words": f"{taken} ({one.accepted_chars} characters)",
        "requests": f"{one.requests}",
        "answered with nothing": _counts(one.empty),
        "tokens written per character accepted": f"{one.tokens_per_accepted_char:.2f} of "
        f"{one.tokens:,}",
        "processor per trace, s (beside the editor)": f"{one.cpu_s_per_trace:.1f} "
        f"({one.editor_cpu_s_per_trace:.1f})",
        "model at work per trace, s": f"{one.model_s_per_trace:.1f}",
        "keys came late by, ms p99": f"{one.late_ms_p99:.0f}",
    }


def _compared(runs: Mapping[str, Sequence[AssistedTrace]]) -> str:
    """Return the first side's keystrokes saved over each other side's, with 95 % intervals."""
    first, *others = runs
    spans = {name: saved_ratio(runs[first], runs[name]) for name in others}
    return "".join(
        f"; {first} saves {low:.2f} to {high:.2f} times what {name} does"
        for name, (low, high) in spans.items()
    )


def _counts(counts: Mapping[str, int]) -> str:
    return "\n".join(f"{name} {count}" for name, count in counts.items()) or "-"


def _ratios(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float]:
    pairs = ((name, first[name], other[name]) for name in _BARS)
    return {name: one / two if two else float("nan") for name, one, two in pairs}


def _trace(run: AssistedTrace) -> dict[str, Any]:
    return {"saved": saved(run.typed), "effort": asdict(run.effort)} | asdict(run.typed)
