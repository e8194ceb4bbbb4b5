"""Step costs and acceptance tables of a machine and model, kept for the next start."""

import logging
import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import msgspec
import numpy as np
from msgspec import Meta

from engine.atomic_write import atomic_write, read_kept
from engine.drafting.acceptance import AcceptanceTable, AcceptanceTables
from engine.drafting.block_copy import COPY_PRIOR
from engine.drafting.budget import Budget, StepCost
from engine.drafting.line_starts import LINE_PRIOR
from engine.drafting.pool.expansion import prior_acceptance
from engine.drafting.recycler import RECYCLER_PRIOR
from engine.drafting.window import WINDOW_PRIOR
from engine.model.causal_lm import CausalModel, StepInput, prefill, run_step
from engine.model.cpu.speed import PROBED_CONTEXT, PROBED_ROWS
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.progress import Progress, shown

_ROW_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_MORE_PROBES = 3  # before a sweep, which takes seconds; each probe takes 0.3 s of a start
_SWEEP_ROUNDS = 3  # timings of each row count; the fastest counts, as noise only adds
_SWEPT_CONTEXT = 512  # tokens behind which steps are timed; prompts hold up to 1024
_BRANCH = 4  # rows of a branch: real drafts have about four
_SWEEP_LIMIT = 4.0  # stop at the row count that costs this many one-row steps
_AGREEMENT = 1.35  # factor within which times agree; it grows with each sweep
_MOST_SWEEPS = 1000  # 1.35 to this power is still a float
_LOG = logging.getLogger("foregram.learning")

_Milliseconds = Annotated[float, Meta(gt=0, le=1e9)]
_Rows = Annotated[int, Meta(ge=1, le=4096)]


class Probe(msgspec.Struct, frozen=True):
    """Times of a one-row and a wider step behind a short context: the machine's speed."""

    one_ms: _Milliseconds
    many_ms: _Milliseconds

    @classmethod
    def take(cls, model: CausalModel) -> Self:
        """Time a step of each width."""
        timer = StepTimer(model, PROBED_CONTEXT)
        return cls(timer.ms(1), timer.ms(PROBED_ROWS))

    def quicker(self, other: "Probe") -> "Probe":
        """Return the faster times of both."""
        return Probe(min(self.one_ms, other.one_ms), min(self.many_ms, other.many_ms))


class SweptCosts(Probe, frozen=True):
    """Step times by row count, on a machine as fast as the probe found it."""

    costs: dict[_Rows, _Milliseconds]
    num_sweeps: Annotated[int, Meta(ge=1, le=_MOST_SWEEPS)] = 1

    def __post_init__(self) -> None:
        StepCost(self.costs)  # checks them

    def is_outdated_by(self, now: Probe) -> bool:
        """Whether to sweep again: steps got faster, or their ratio changed."""
        agreement = _AGREEMENT**self.num_sweeps  # or a busy machine would sweep at every start
        if now.one_ms > self.one_ms * agreement:
            return False  # known costs are better than any measured beside other work
        change = (now.many_ms / now.one_ms) / (self.many_ms / self.one_ms)
        is_faster = now.one_ms * agreement < self.one_ms
        return is_faster or not 1 / agreement <= change <= agreement


class _Kept(msgspec.Struct):
    swept: SweptCosts
    tables: dict[str, list[list[float]]] = {}


def fresh_tables() -> AcceptanceTables:
    """Return the tables of all drafters without evidence."""
    return AcceptanceTables(
        {
            "pool": AcceptanceTable(prior_acceptance()),
            "window": AcceptanceTable(WINDOW_PRIOR),
            "recycler": AcceptanceTable(RECYCLER_PRIOR),
            "copy": AcceptanceTable(COPY_PRIOR),
            "line": AcceptanceTable(LINE_PRIOR),
        }
    )


def machine_key(fingerprint: str, device: str, dtype_name: str, threads: int) -> str:
    """A file name made of all that step costs and acceptance depend on."""
    parts = [fingerprint[:16], device, dtype_name, f"{threads}-threads"]
    return "-".join(parts).replace(":", "-")


def known_probe_ms(folder: Path, key: str) -> float | None:
    """Return the time of the wider probe as a sweep of this key knows it; None without a sweep."""
    kept = read_kept(folder / f"{key}.json", _Kept)
    if kept is None:
        return None
    return min(kept.swept.many_ms, kept.swept.costs.get(PROBED_ROWS, math.inf))


@dataclass(frozen=True, slots=True)
class Learning:
    """The acceptance tables, the step costs, and the file that keeps them."""

    tables: AcceptanceTables
    budget: Budget
    file: Path
    _swept: SweptCosts

    @classmethod
    def load(cls, folder: Path, key: str, model: CausalModel, progress: Progress) -> "Learning":
        """Read the file of `key`; missing or damaged data starts afresh."""
        file = folder / f"{key}.json"
        tables = fresh_tables()
        kept = read_kept(file, _Kept)
        is_damaged = kept is None and file.exists()
        if kept is not None:
            try:
                tables.restore(kept.tables)
            except ValueError:
                is_damaged = True
        if is_damaged:
            _LOG.warning("%s is damaged or of another version; it is learned anew", file)
        former = None if kept is None else kept.swept
        swept = _up_to_date(former, model, progress)
        budget = Budget(StepCost(swept.costs, model.row_buckets), model.most_rows)
        learning = cls(tables, budget, file, swept)
        if swept is not former:
            learning._write(swept)
        return learning

    def save(self) -> None:
        """Write the tables and the latest costs, maybe another process's. Ignores disk errors."""
        kept = read_kept(self.file, _Kept)
        self._write(kept.swept if kept else self._swept)

    def _write(self, swept: SweptCosts) -> None:
        with suppress(OSError), atomic_write(self.file) as file:
            file.write(msgspec.json.encode(_Kept(swept, self.tables.counts())))


def _up_to_date(known: SweptCosts | None, model: CausalModel, progress: Progress) -> SweptCosts:
    """Return the known costs, or sweep if there are none or all probes find them outdated."""
    probe, left = Probe.take(model), _MORE_PROBES
    while known is None or known.is_outdated_by(probe):
        if not left:
            num_sweeps = 1 if known is None else min(known.num_sweeps + 1, _MOST_SWEEPS)
            return SweptCosts(probe.one_ms, probe.many_ms, _sweep(model, progress), num_sweeps)
        probe, left = probe.quicker(Probe.take(model)), left - 1
    return known


class StepTimer:
    """Times steps of `model` behind `context` tokens, or as many as it has room for."""

    def __init__(self, model: CausalModel, context: int) -> None:
        self.context = context = min(context, model.max_context - MAX_ROWS)
        self._ids = np.arange(context + MAX_ROWS) % model.vocab_size
        self._model, self._slot = model, model.new_slot(context + MAX_ROWS)
        prefill(model, self._slot, self._ids[:context].tolist())

    def ms(self, rows: int) -> float:
        """Time a step of `rows` rows."""
        step = StepInput(self._slot, drafted_tree(self._ids[:rows]))
        return run_step(self._model, step).ms


def drafted_tree(token_ids: np.ndarray) -> TokenTree:
    """Return a tree of these tokens in branches of four, like those of drafts."""
    parents = np.arange(-1, len(token_ids) - 1, dtype=np.int32)
    parents[_BRANCH::_BRANCH] = 0
    return TokenTree(token_ids, parents)


def _sweep(model: CausalModel, progress: Progress) -> dict[int, float]:
    """Time steps of growing row counts. The fastest of several rounds counts: noise only adds."""
    counts = sorted({1, *model.row_buckets}) if model.row_buckets else _ROW_COUNTS
    costs: dict[int, float] = {}
    with shown(progress, "timing this machine's decoding steps", _SWEEP_ROUNDS * len(counts)):
        timer = StepTimer(model, _SWEPT_CONTEXT)
        for _ in range(_SWEEP_ROUNDS):
            for rows in counts:
                progress.advance(1)
                costs[rows] = min(timer.ms(rows), costs.get(rows, math.inf))
                if costs[rows] > _SWEEP_LIMIT * costs[1]:
                    break
    return costs
