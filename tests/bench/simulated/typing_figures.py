"""The figures of many traces: keys saved, the time to ghost text, and how often it is wrong.

Shares are of 1. A figure without a single case is NaN.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, nan
from statistics import fmean
from typing import Any

from rich.table import Table

from engine.bench.figures import percentile
from engine.bench.report import figure_table, plain
from engine.text.brackets import CLOSERS
from tests.bench.pairing import ratio_interval
from tests.bench.simulated.sides import AssistedTrace
from tests.bench.simulated.typist import KeyPress, TypedTrace

WITHIN_S = (0.0, 0.2, 0.5, 1.0)
_SOON_S = 0.2
_TAKING = ("all", "line", "word")
_BARS = (  # figures in which sides are compared, as ratios
    "keystrokes_saved",
    "time_against_pure",
    "begun_to_shown_ms_p50",
    "wrong_share",
    "cpu_s_per_trace",
)


@dataclass(frozen=True, slots=True)
class TypingFigures:
    """One side's figures. Keys count an automatic indentation with its Enter."""

    traces: int
    target_keys: int  # keys of a person who types everything
    keystrokes_saved: float
    keystrokes_saved_p50: float  # median over the traces
    time_against_pure: float  # total time, relative to typing everything
    pure_s: float
    late_ms_p99: float  # lateness of keys: above 20 ms the machine is too busy
    # The shown texts: how soon they came, and how much of them was wrong.
    key_to_ghost_ms_p50: float  # from the last key before a text appeared
    key_to_ghost_ms_p90: float
    begun_to_shown_ms_p50: float  # from the begin of the host's work on it
    begun_to_shown_ms_p90: float
    gap_s_p50: float  # seconds without a text before one appeared
    gap_s_p90: float
    keys_with_ghost: Mapping[str, float]  # share of keys by ms until ghost text, later keys or not
    moments: Mapping[str, float]  # share of keys of a kind with ghost text within 200 ms
    flickers_per_minute: float  # texts withdrawn or changed by an answer, not by a key
    suggestions: int
    from_memory: int  # suggestions that were computed before their request
    shown_chars: int
    wrong_share: float  # share of the shown characters
    # The accepted texts.
    accepts: Mapping[str, int]
    accepted_chars: int
    # The cost.
    requests: int
    empty: Mapping[str, int]
    tokens: int
    tokens_per_accepted_char: float
    cpu_s_per_trace: float
    editor_cpu_s_per_trace: float
    model_s_per_trace: float  # seconds of reading prompts and writing text


def typing_figures(runs: Sequence[AssistedTrace]) -> TypingFigures:
    typed, efforts = [run.typed for run in runs], [run.effort for run in runs]
    keys = [key for trace in typed for key in trace.keys]
    taken = [key for key in keys if key.kind in _TAKING]
    target_keys = sum(len(trace.own_s) for trace in typed)
    pure_s = sum(sum(trace.own_s) for trace in typed)
    shown = [one for trace in typed for one in trace.suggestions]
    begun_ms = [1000 * one.begun_s for one in shown if one.begun_s is not None]
    to_ghost_ms = [1000 * (one.at - one.key_at) for one in shown]
    gaps = [one.gap_s for one in shown if one.gap_s]
    chars = sum(one.new_chars for one in shown)
    accepted_chars = sum(len(key.text) for key in taken)
    typed_s = sum(trace.keys[-1].at for trace in typed)
    tokens = sum(one.tokens for one in efforts)
    empty = Counter[str]()
    for one in efforts:
        empty.update(one.empty)
    return TypingFigures(
        traces=len(runs),
        target_keys=target_keys,
        keystrokes_saved=1 - len(keys) / target_keys,
        keystrokes_saved_p50=percentile(map(saved, typed), 50),
        time_against_pure=typed_s / pure_s,
        pure_s=pure_s,
        late_ms_p99=percentile([1000 * key.late_s for key in keys], 99),
        key_to_ghost_ms_p50=percentile(to_ghost_ms, 50),
        key_to_ghost_ms_p90=percentile(to_ghost_ms, 90),
        begun_to_shown_ms_p50=percentile(begun_ms, 50),
        begun_to_shown_ms_p90=percentile(begun_ms, 90),
        gap_s_p50=percentile(gaps, 50),
        gap_s_p90=percentile(gaps, 90),
        keys_with_ghost=_shares_within(typed),
        moments=_moments(typed),
        flickers_per_minute=60 * sum(trace.num_flickers for trace in typed) / typed_s,
        suggestions=len(shown),
        from_memory=len(shown) - len(begun_ms),
        shown_chars=chars,
        wrong_share=_over(sum(one.wrong_chars for one in shown), chars),
        accepts=dict(Counter(key.kind for key in taken).most_common()),
        accepted_chars=accepted_chars,
        requests=sum(one.requests for one in efforts),
        empty=dict(empty.most_common()),
        tokens=tokens,
        tokens_per_accepted_char=_over(tokens, accepted_chars),
        cpu_s_per_trace=fmean(one.cpu_s for one in efforts),
        editor_cpu_s_per_trace=fmean(one.editor_cpu_s for one in efforts),
        model_s_per_trace=fmean(one.prefill_s + one.decode_s for one in efforts),
    )


def saved(typed: TypedTrace) -> float:
    return _spared(typed) / len(typed.own_s)


def saved_ratio(
    ours: Sequence[AssistedTrace], others: Sequence[AssistedTrace]
) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of keystrokes saved, over resampled traces."""
    return ratio_interval(*([_spared(run.typed) for run in side] for side in (ours, others)))


def waits(typed: TypedTrace) -> Iterable[float]:
    """Yield the seconds from each key but the last to the next ghost text, later keys or not.

    0 if it stayed; infinite if none came.
    """
    for key in typed.keys[:-1]:
        later = (start for start, end in typed.visible if end > key.at)
        yield max(0.0, next(later, float("inf")) - key.at)


def _spared(typed: TypedTrace) -> int:
    return len(typed.own_s) - len(typed.keys)


def _shares_within(typed: Sequence[TypedTrace]) -> Mapping[str, float]:
    every = [wait for trace in typed for wait in waits(trace)]
    return {
        f"{1000 * limit:.0f}": _over(sum(wait <= limit for wait in every), len(every))
        for limit in WITHIN_S
    }


def _moments(typed: Sequence[TypedTrace]) -> Mapping[str, float]:
    soon: dict[str, list[bool]] = {}
    for trace in typed:
        arrived_s = min((start for start, _ in trace.visible), default=inf)
        soon.setdefault("arrival", []).append(arrived_s <= _SOON_S)
        for key, wait_s in zip(trace.keys, waits(trace), strict=False):
            soon.setdefault(_moment(key), []).append(wait_s <= _SOON_S)
    return {name: fmean(some) for name, some in soon.items()}


def _moment(key: KeyPress) -> str:
    if key.kind in _TAKING:
        return "accept"
    if key.kind in ("slip", "erase"):
        return key.kind
    if key.text.startswith("\n"):
        return "Enter"
    return "closer" if key.text in CLOSERS else "other key"


def _over(part: float, whole: float) -> float:
    return part / whole if whole else nan


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
    title = f"{one.traces} traces typed"
    table = figure_table(["figure"], list(runs), title=title, caption=caption)
    cells = [_cells(figures) for figures in sides]
    for name in cells[0]:
        table.add_row(name, *(one[name] for one in cells))
    return table


def _cells(figures: TypingFigures) -> dict[str, str]:
    one = figures
    within = " / ".join(f"{share:.0%}" for share in one.keys_with_ghost.values())
    taken = " / ".join(f"{one.accepts.get(kind, 0)}" for kind in _TAKING)
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
        "of them, after an": "\n".join(f"{kind} {of:.0%}" for kind, of in one.moments.items()),
        "flickers a minute": f"{one.flickers_per_minute:.1f}",
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
    return {name: one / two if two else nan for name, one, two in pairs}


def _trace(run: AssistedTrace) -> dict[str, Any]:
    return {"saved": saved(run.typed), "effort": asdict(run.effort)} | asdict(run.typed)
