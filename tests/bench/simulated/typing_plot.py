"""Draws what every trace saved, and how long keys waited for ghost text."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.bench.plots import COLOURS, label_axes
from tests.bench.simulated.sides import AssistedTrace
from tests.bench.simulated.typing_figures import saved, typing_figures, waits

_LONGEST_MS = 2000


def draw_typing(runs: Mapping[str, Sequence[AssistedTrace]], figure: Any) -> None:
    """Each side's traces, the best first; the share of keys with ghost text by their wait."""
    left, right = figure.subplots(1, 2)
    for colour, (name, some) in zip(COLOURS, runs.items(), strict=False):
        shares = sorted((100 * saved(run.typed) for run in some), reverse=True)
        total = typing_figures(some).keystrokes_saved
        places = 100 * (np.arange(len(shares)) + 0.5) / len(shares)
        left.plot(places, shares, ".-", color=colour, label=f"{name}: {total:.1%} in all", ms=4)
        waited = sorted(1000 * wait for run in some for wait in waits(run.typed))
        keys = 100 * np.arange(1, len(waited) + 1) / max(len(waited), 1)
        right.step(waited, keys, where="post", color=colour, label=name)
    label_axes(left, "traces, best first (%)", "keystrokes saved (%)")
    label_axes(right, "ms from a key to ghost text", "keys (%)")
    right.set_xlim(0, _LONGEST_MS)
    right.set_ylim(0, 100)
