"""Whether the model is right as often as it says: reliability, and the temperature that mends it.

No text is written: at each token of an item's target the model, given all before it, names its
likeliest token and how probable that is. It is right where the target goes on with it. A model that
is too sure of itself is mended by one number, the temperature that its logits are divided by before
the probability is taken (Guo et al. 2017); choices stay what they are. The temperature is fitted on
half of the packages and judged on the other half, in both directions.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from rich.console import Group
from rich.table import Table

from engine.bench.plots import COLOURS, Picture, label_axes
from engine.bench.requests import request_for
from engine.bench.task_sets import ReplayItem, load_replay_items
from engine.errors import ConfigurationError, InputError
from engine.model.causal_lm import CacheSlot, CausalModel, StepInput, prefill, run_step
from engine.model.loading.loaded_model import LoadedModel
from engine.model.log_probs import log_probs
from engine.model.prompt import Prompt
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.request import CompletionRequest
from lsp_server.cli.bench_arguments import add_plot, add_replay_set
from lsp_server.cli.command_parser import add_json
from lsp_server.cli.engine_arguments import add_decoding, add_model, decoding
from lsp_server.cli.engine_loading import load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings

TEMPERATURES = np.arange(0.5, 2.51, 0.05)
_BINS = 15
_CERTAIN = 1 - 1e-6  # the logarithm of what is left of a certain choice would be infinite


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the command line takes."""
    add_replay_set(parser)
    add_model(parser)
    add_decoding(parser, max_tokens=128)
    add_json(parser)
    add_plot(parser, "draw the reliability diagram")


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure whether the model is right as often as it says, before and after a fit."""
    picture = Picture(arguments.plot) if arguments.plot else None
    items = load_replay_items(arguments.file, arguments.count)
    with closing(load_engine(arguments, settings, ProgressBars())) as engine:
        read = tracked(items, "items")
        tokens = read_choices(engine.model, read, engine.prompt, decoding(arguments))
    figures = calibration_figures(tokens)
    print_figures(arguments, calibration_json(figures), calibration_table(figures))
    if picture:
        picture.save(partial(draw_calibration, figures))


@dataclass(frozen=True, slots=True)
class ChosenTokens:
    """The model's choices at each place: whose they are, how likely, and whether they are right.

    `packages` names [tokens]; `log_probs` float32 [tokens, temperatures]; `right` bool [tokens].
    """

    packages: np.ndarray
    log_probs: np.ndarray
    right: np.ndarray

    def __post_init__(self) -> None:
        assert len(self.packages) == len(self.log_probs) == len(self.right)


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Tokens whose confidence is within one part of 0 to 1; means over these."""

    tokens: int
    confidence: float
    right: float


@dataclass(frozen=True, slots=True)
class CalibrationFigures:
    """Shares of 1. An expected calibration error is the mean gap of 15 equal bins, by their tokens."""

    tokens: int
    right: float
    confidence: float
    error: float
    temperature: float  # fitted on all
    fitted_error: float  # each half at the other half's temperature
    bins: tuple[ReliabilityBin, ...]
    fitted_bins: tuple[ReliabilityBin, ...]


def read_choices(
    model: LoadedModel,
    items: Iterable[ReplayItem],
    prompt_of: Callable[[CompletionRequest], Prompt],
    decoding: CompletionRequest,
) -> ChosenTokens:
    """Read the items' targets, up to as many tokens as a completion may have.

    `prompt_of` lays out the prompt of a request, as an engine of this model does.
    """
    readings = [
        _read(model, item, prompt_of(request_for(item, decoding)), decoding.stop.max_tokens)
        for item in items
    ]
    if not readings:
        raise ConfigurationError("there is nothing to read: the set is empty")
    return ChosenTokens(
        *(np.concatenate(parts) for parts in zip(*map(_arrays, readings), strict=True))
    )


def _arrays(one: ChosenTokens) -> Sequence[np.ndarray]:
    return one.packages, one.log_probs, one.right


def _read(model: LoadedModel, item: ReplayItem, prompt: Prompt, max_tokens: int) -> ChosenTokens:
    if not item.target:
        raise InputError(f"{item.id}: there is nothing to read, its target is empty")
    # Behind what token healing took back, as a completion that agrees would be written.
    text = prompt.dropped.decode("utf-8", "replace") + item.target
    target = list(model.tokenizer.encode(text))[:max_tokens]
    slot = model.causal_lm.new_slot(len(prompt.ids) + len(target) + MAX_ROWS)
    prefill(model.causal_lm, slot, prompt.ids[:-1])
    ids = [prompt.ids[-1], *target[:-1]]
    read = list(_steps(model.causal_lm, slot, ids))
    found = np.concatenate([log_probs for log_probs, _ in read])
    chosen = np.concatenate([choices for _, choices in read])
    return ChosenTokens(np.full(len(target), item.package), found, chosen == np.array(target))


def _steps(
    model: CausalModel,
    slot: CacheSlot,
    ids: Sequence[int],
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The log-probabilities of a piece's choices at all temperatures, and the choices."""
    for start in range(0, len(ids), MAX_ROWS):
        piece = ids[start : start + MAX_ROWS]
        logits = run_step(model, StepInput(slot, TokenTree.chain(piece), wants_logits=True)).logits
        if logits is None:
            raise ValueError("a step that was asked for its logits has them")
        slot.commit(range(len(piece)))
        chosen = logits.argmax(dim=1).cpu().numpy()
        yield _at_all_temperatures(logits, chosen), chosen


def _at_all_temperatures(logits: torch.Tensor, chosen: np.ndarray) -> np.ndarray:
    rows = np.arange(len(chosen))
    columns = [log_probs(logits / temperature, rows, chosen) for temperature in TEMPERATURES]
    return np.stack(columns, axis=1)


def calibration_figures(tokens: ChosenTokens) -> CalibrationFigures:
    """Sum up what the model said of each token."""
    one = int(np.abs(TEMPERATURES - 1).argmin())
    said, mended = np.exp(tokens.log_probs[:, one]), _mended(tokens)
    bins, fitted = reliability(said, tokens.right), reliability(mended, tokens.right)
    every = np.ones(len(tokens.right), bool)
    return CalibrationFigures(
        tokens=len(tokens.right),
        right=float(tokens.right.mean()),
        confidence=float(said.mean()),
        error=calibration_error(bins),
        temperature=float(TEMPERATURES[fitted_temperature(tokens, every)]),
        fitted_error=calibration_error(fitted),
        bins=bins,
        fitted_bins=fitted,
    )


def fitted_temperature(tokens: ChosenTokens, among: np.ndarray) -> int:
    """Which of `TEMPERATURES` makes what is so, right or wrong, the likeliest among these tokens."""
    found = np.minimum(tokens.log_probs[among].astype(np.float64), np.log(_CERTAIN))
    right = tokens.right[among][:, None]
    return int(np.where(right, found, np.log1p(-np.exp(found))).mean(axis=0).argmax())


def _mended(tokens: ChosenTokens) -> np.ndarray:
    """Each token's confidence at the temperature of the packages that are not in its half."""
    first = np.isin(tokens.packages, np.unique(tokens.packages)[::2])
    if first.all():
        first = np.arange(len(first)) % 2 == 0  # one package: every other token
    mended = np.empty(len(tokens.right))
    for half in (first, ~first):
        mended[half] = np.exp(tokens.log_probs[half, fitted_temperature(tokens, ~half)])
    return mended


def reliability(confidence: np.ndarray, right: np.ndarray) -> tuple[ReliabilityBin, ...]:
    """The bins, those without a token left out."""
    places = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    members = [places == place for place in range(_BINS)]
    return tuple(
        ReliabilityBin(int(some.sum()), float(confidence[some].mean()), float(right[some].mean()))
        for some in members
        if some.any()
    )


def calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """The expected calibration error."""
    total = sum(one.tokens for one in bins)
    return sum(one.tokens * abs(one.confidence - one.right) for one in bins) / total


def calibration_json(figures: CalibrationFigures) -> Mapping[str, Any]:
    """The figures as one object."""
    return asdict(figures)


def calibration_table(figures: CalibrationFigures) -> Group:
    """The reliability diagram in figures, and what it amounts to."""
    table = Table("tokens", "said", "right", title="as the model says")
    for one in figures.bins:
        table.add_row(f"{one.tokens:,}", f"{one.confidence:.1%}", f"{one.right:.1%}")
    line = (
        f"{figures.tokens:,} tokens, {figures.right:.1%} right, said {figures.confidence:.1%}: "
        f"expected calibration error {figures.error:.3f}; at the other half's temperature "
        f"{figures.fitted_error:.3f} (of all tokens: {figures.temperature:.2f})"
    )
    return Group(table, line)


def draw_calibration(figures: CalibrationFigures, figure: Any) -> None:
    """The reliability diagram: how often the model is right where it is so sure, before and after."""
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], "--", color="#888888", label="as often as it says")
    drawn = {
        f"error {figures.error:.3f}": figures.bins,
        f"fitted: {figures.fitted_error:.3f}": figures.fitted_bins,
    }
    for colour, (name, bins) in zip(COLOURS, drawn.items(), strict=False):
        points = [(one.confidence, one.right) for one in bins]
        axes.plot(*zip(*points, strict=True), "o-", color=colour, label=name, ms=4)
    label_axes(axes, "probability of the likeliest token", "share that is right")
