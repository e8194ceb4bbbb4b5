"""Benchmarks of the model and its parts: quantization, calibration, a step's time, the pool."""

import argparse
from contextlib import closing
from dataclasses import asdict
from functools import partial

from engine.bench.calibration import (
    calibration_figures,
    calibration_json,
    calibration_table,
    read_choices,
)
from engine.bench.plots import Picture, draw_calibration, draw_steps
from engine.bench.pool import measure_pool
from engine.bench.quantization import measure_quantizations, quantization_json, quantization_table
from engine.bench.step import (
    MachineLimits,
    cases,
    int8_model,
    measure_steps,
    steps_json,
    steps_table,
)
from engine.bench.task_sets import load_replay_items
from engine.model.device import choose_device
from engine.model_names import DEFAULT_MODEL
from engine.options import wanted_model
from lsp_server.cli.engine_arguments import decoding
from lsp_server.cli.engine_loading import engine_options, load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings


def bench_forms(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure what weights of fewer bits cost in quality."""
    items = load_replay_items(arguments.file, arguments.count)
    figures = measure_quantizations(
        arguments.model or settings.model or DEFAULT_MODEL,
        items,
        choose_device(arguments.device or settings.device),
        settings.cache_folder,
        ProgressBars(),
        partial(tracked, noun="items"),
        arguments.against,
    )
    print_figures(arguments, quantization_json(figures), quantization_table(figures))


def bench_calibration(arguments: argparse.Namespace, settings: Settings) -> None:
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


def bench_step(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure where a step's time goes on this processor."""
    picture = Picture(arguments.plot) if arguments.plot else None
    loaded = wanted_model(engine_options(arguments, settings), ProgressBars())
    model = int8_model(loaded.causal_lm)
    times = list(measure_steps(model, tracked(cases(), "steps")))
    limits = MachineLimits.measure(model.weights)
    print_figures(arguments, steps_json(times, limits), steps_table(times, limits))
    if picture:
        picture.save(partial(draw_steps, times, limits))


def bench_pool(arguments: argparse.Namespace, _settings: Settings) -> None:
    """Measure the n-gram pool alone."""
    figures = measure_pool(arguments.tokens)
    print_figures(arguments, asdict(figures), figures.table())
