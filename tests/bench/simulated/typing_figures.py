"""The figures of many traces: keys saved, the time to ghost text, and how often it is wrong.

Shares are of 1. A figure without a single case is NaN.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from statistics import fmean

from engine.bench.figures import percentile
from tests.bench.pairing import ratio_interval
from tests.bench.simulated.sides import AssistedTrace
from tests.bench.simulated.typist import TypedTrace

WITHIN_S = (0.0, 0.2, 0.5, 1.0)


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
    taken = [key for key in keys if key.kind != "key"]
    target_keys = sum(len(trace.own_s) for trace in typed)
    pure_s = sum(sum(trace.own_s) for trace in typed)
    shown = [one for trace in typed for one in trace.suggestions]
    begun_ms = [1000 * one.begun_s for one in shown if one.begun_s is not None]
    to_ghost_ms = [1000 * (one.at - one.key_at) for one in shown]
    gaps = [one.gap_s for one in shown if one.gap_s]
    chars = sum(one.new_chars for one in shown)
    accepted_chars = sum(key.num_chars for key in taken)
    tokens = sum(one.tokens for one in efforts)
    empty = Counter[str]()
    for one in efforts:
        empty.update(one.empty)
    return TypingFigures(
        traces=len(runs),
        target_keys=target_keys,
        keystrokes_saved=1 - len(keys) / target_keys,
        keystrokes_saved_p50=percentile(map(saved, typed), 50),
        time_against_pure=sum(trace.keys[-1].at for trace in typed) / pure_s,
        pure_s=pure_s,
        late_ms_p99=percentile([1000 * key.late_s for key in keys], 99),
        key_to_ghost_ms_p50=percentile(to_ghost_ms, 50),
        key_to_ghost_ms_p90=percentile(to_ghost_ms, 90),
        begun_to_shown_ms_p50=percentile(begun_ms, 50),
        begun_to_shown_ms_p90=percentile(begun_ms, 90),
        gap_s_p50=percentile(gaps, 50),
        gap_s_p90=percentile(gaps, 90),
        keys_with_ghost=_shares_within(typed),
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


def _over(part: float, whole: float) -> float:
    return part / whole if whole else nan
