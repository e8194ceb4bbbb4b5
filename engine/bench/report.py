"""Parts of all benchmark reports: tables for people, one object for programs."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import msgspec
from rich.console import Group
from rich.table import Table

from engine.bench.figures import Speed, speed_figures
from engine.bench.measured import Measured, Runs
from engine.completer import EngineInfo
from engine.model.device import has_torch
from engine.request import CompletionRequest

_BUSY = 1.25  # runnable threads per core; above this, programs wait for each other


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how figures were measured. Figures of different settings are not comparable."""

    engine: EngineInfo
    decoding: CompletionRequest  # without a text

    @property
    def line(self) -> str:
        """Return one line for a table's caption."""
        engine, stop = self.engine, self.decoding.stop
        return (
            f"{engine.model} {engine.dtype} on {engine.device}, {engine.threads} threads of "
            f"{_machine()}; lookahead {self.decoding.lookahead}, layout {self.decoding.layout}, at most "
            f"{stop.max_tokens} tokens, temperature {self.decoding.sampling.temperature:g}"
            + (f", confidence {stop.min_confidence:g}" if stop.min_confidence else "")
            + self._caveat
        )

    @property
    def _caveat(self) -> str:
        cores, load = os.cpu_count() or 1, _load()
        if load < _BUSY * cores:
            return ""
        return f"; THE MACHINE WAS BUSY (load {load:.1f} on {cores} cores), TIMES ARE UNSTEADY"

    def as_json(self) -> dict[str, Any]:
        """Return the model, options and machine of the run."""
        return {
            "model": self.engine.model,
            "device": self.engine.device,
            "dtype": self.engine.dtype,
            "layout": self.decoding.layout,
            "lookahead": str(self.decoding.lookahead),
            **msgspec.structs.asdict(self.decoding.sampling),
            **msgspec.structs.asdict(self.decoding.stop),
            "threads": self.engine.threads,
            "machine": _machine(),
            "load": round(_load(), 2),
        }


def replay_json(runs: Runs, setting: Setting) -> dict[str, Any]:
    """Return figures by set, and each item's result. Times in ms; NaN becomes null."""
    every = [run for some in runs.values() for run in some]
    return setting.as_json() | {
        "sets": {kind: plain(speed_figures(some)) for kind, some in runs.items()},
        "different": [run.id for run in every if not run.is_identical],
        "items": [plain(_item_json(run)) for run in every],
    }


def replay_tables(runs: Runs, setting: Setting) -> Group:
    """Return a table of all sets' speeds, then lines about their drafting."""
    numbers = ("tokens/s", "ms p50", "ms p95", "on / this")
    caption = "ms per token over items; on / this compares speeds"
    table = figure_table(["decoding alone", "lookahead"], numbers, title="speed", caption=caption)
    lines = []
    for kind, some in runs.items():
        one = speed_figures(some)
        table.add_row(f"{kind}, {one.items} items", "on", *speed_cells(one.on), "")
        table.add_row("", "off", *speed_cells(one.off), f"{one.on_over_off:.2f}")
        lines += [
            f"{kind}: {one.tokens_per_step:.2f} tokens and {one.rows_per_step:.1f} rows per step, "
            f"{one.identical:.1%} of items identical with lookahead",
            f"accepted by source: {_counts(one.accepted_by_source)}",
            f"ended by: {_counts(one.finish_reasons)}",
        ]
    every = (run for some in runs.values() for run in some)
    lines += [f"not identical with lookahead: {run.id}" for run in every if not run.is_identical]
    return Group(table, setting.line, *lines)


def speed_cells(speed: Speed) -> list[str]:
    """Return tokens per second, and the median and 95th percentile of ms per token."""
    values = (speed.tokens_per_second, speed.ms_per_token_p50, speed.ms_per_token_p95)
    return [f"{value:.1f}" for value in values]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "-"


def _item_json(run: Measured) -> dict[str, Any]:
    on, off = run.on.cost, run.off.cost
    return {
        "id": run.id,
        "identical": run.is_identical,
        "text": run.on.text,
        "finish_reason": run.on.finish_reason.value,
        "tokens": on.tokens,
        "steps": on.steps,
        "tokens_per_step": on.tokens_per_step,
        "rows_per_step": on.rows_per_step,
        "prompt_tokens": on.prompt_tokens,
        "decode_ms_on": on.decode_ms,
        "decode_ms_off": off.decode_ms,
        "speed_up": Speed.of([on]).over(Speed.of([off])),
    }


def figure_table(
    words: Sequence[str], numbers: Sequence[str], *, title: str, caption: str
) -> Table:
    """Make a table with columns of `words` on the left, then right-aligned `numbers`."""
    table = Table(*words, title=title, caption=caption)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def plain(value: Any) -> Any:  # noqa: ANN401 - any of the figures
    """Convert data classes and structs to JSON values; numbers that are not finite become null."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _load() -> float:
    """Return the mean number of runnable threads in the last five minutes, ours included."""
    return os.getloadavg()[1]


def _machine() -> str:
    computes = "torch" if has_torch() else "numba"
    return f"{platform.machine()} {platform.system()}, {computes} {version(computes)}"
