"""Time a step of the 8-bit model on a CPU, by rows and context."""

import argparse
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from rich.table import Table

from engine.bench.report import figure_table
from engine.errors import ConfigurationError
from engine.loader import wanted_model
from engine.model.causal_lm import CausalModel, StepInput, prefill, run_step
from engine.model.cpu.int8_qwen2 import Int8Qwen2
from engine.model.token_tree import MAX_ROWS, TokenTree
from kernels.cpu_forward import host_unit
from lsp_server.cli.command_parser import add_json
from lsp_server.cli.engine_arguments import add_model, engine_options
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings

ROWS = (1, 2, 4, 8, 16, 32, 64, MAX_ROWS)
CONTEXTS = (64, 960, 3840)
CASES = tuple(product(CONTEXTS, ROWS))
_TRIES = 9


def add_options(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_json(parser)


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    loaded = wanted_model(engine_options(arguments, settings), ProgressBars())
    times = list(measure_steps(int8_model(loaded.causal_lm), tracked(CASES, "steps")))
    print_figures(arguments, steps_json(times), steps_table(times))


@dataclass(frozen=True, slots=True)
class StepMedian:
    """The median time of a step, in ms."""

    rows: int
    context: int
    ms: float


def int8_model(model: CausalModel) -> Int8Qwen2:
    """Return `model` if its steps can be measured. Raises ConfigurationError."""
    if not isinstance(model, Int8Qwen2):
        raise ConfigurationError(
            f"steps are measured with 8-bit weights on a CPU, not {model.dtype_name} on "
            f"{model.device}; `foregram bench gpu` measures a GPU"
        )
    return model


def measure_steps(model: Int8Qwen2, wanted: Iterable[tuple[int, int]]) -> Iterator[StepMedian]:
    """Time steps of (context, rows). Contexts must ascend."""
    rng = np.random.default_rng(0)
    slot = model.new_slot(max(CONTEXTS) + MAX_ROWS)
    for context, rows in wanted:
        prefill(model, slot, rng.integers(0, model.vocab_size, context - slot.length).tolist())
        step = StepInput(slot, _random_tree(rng, rows, model.vocab_size))
        times = [run_step(model, step).ms for _ in range(_TRIES)]
        yield StepMedian(rows, context, statistics.median(times))


def _random_tree(rng: np.random.Generator, rows: int, vocab_size: int) -> TokenTree:
    parents = [-1, *(int(rng.integers(max(0, row - 4), row)) for row in range(1, rows))]
    return TokenTree(rng.integers(0, vocab_size, rows), np.array(parents, np.int32))


def steps_json(times: list[StepMedian]) -> dict[str, Any]:
    """Return all figures."""
    return {"steps": [asdict(one) for one in times]}


def steps_table(times: list[StepMedian]) -> Table:
    """Return a table with a row for each step."""
    caption = f"{host_unit().name}, {torch.get_num_threads()} threads; ms, medians"
    table = figure_table(["context", "rows"], ["step"], title="a step's time", caption=caption)
    for one in times:
        table.add_row(str(one.context), str(one.rows), f"{one.ms:.1f}")
    return table
