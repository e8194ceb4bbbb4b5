"""`foregram bench`: how fast text is decoded, what a step takes, what a GPU does."""

import argparse
import json
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from engine.bench.gpu.lab import Lab
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.plot import StepPlot
from engine.bench.gpu.replays import read_tokenizer
from engine.bench.gpu.run import (
    QUICK,
    GpuBench,
    Sections,
    Sizes,
    bench_sections,
    check_sections,
    profile_sections,
)
from engine.bench.gpu.shapes import ALL_SHAPES, PROFILE_SHAPES, QUICK_SHAPES, parse_shapes
from engine.bench.replay import replay_json, replay_tables, run_replay
from engine.bench.report import Setting
from engine.bench.step import CASES, int8_model, measure_steps, steps_json, steps_table
from engine.bench.task_sets import load_replay_items
from engine.errors import ConfigurationError
from engine.loader import wanted_model
from engine.model.device import gpu_quantization
from lsp_server.cli.engine_arguments import decoding, engine_options, load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings

_PIPED_COLUMNS = 180  # width of tables that go to a pipe


def bench_replay(arguments: argparse.Namespace, settings: Settings) -> None:
    """Decode a replay set with lookahead off and on."""
    items = load_replay_items(arguments.file, arguments.count)
    wanted = decoding(arguments)
    with closing(load_engine(arguments, settings, ProgressBars())) as engine:
        runs = run_replay(engine, tracked(items, "items"), wanted)
        setting = Setting(engine.info, wanted)
    print_figures(arguments, replay_json(runs, setting), replay_tables(runs, setting))


def bench_step(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure what steps take on this processor."""
    loaded = wanted_model(engine_options(arguments, settings), ProgressBars())
    times = list(measure_steps(int8_model(loaded.causal_lm), tracked(CASES, "steps")))
    print_figures(arguments, steps_json(times), steps_table(times))


def bench_gpu(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure a GPU section by section; each is printed and saved when it is done."""
    if arguments.sets and (arguments.profile or arguments.check):
        raise ConfigurationError("--profile and --check replay nothing: they take no sets")
    if arguments.plot and arguments.check:
        raise ConfigurationError("--check times no steps: it takes no --plot")
    plot = StepPlot(arguments.plot) if arguments.plot else None
    saved = Path(f"{arguments.save}.json")
    sections = _sections(arguments, settings)
    # A device without kernels of ours can be checked, too.
    portable = Machine.without_kernels() if arguments.check else None
    lab = Lab(portable or Machine.gpu(), ProgressBars(Console(stderr=True)))
    bench = GpuBench(lab, sections)
    bench.save(saved)  # a missing folder fails here, before anything is measured
    console = Console(
        width=None if sys.stdout.isatty() else _PIPED_COLUMNS,
        markup=False,  # messages of libraries have brackets of their own
        emoji=False,
    )
    for name in bench.run():
        bench.save(saved)
        if not arguments.json:
            console.print(*bench.tables(name), sep="\n")
    if arguments.json:
        sys.stdout.write(json.dumps(bench.as_json()) + "\n")
    elif bench.failures:
        console.print(bench.failures_table())  # last of all
    if plot and (times := bench.step_times):
        plot.save(times)  # at the end: if it fails, no figures are lost


def _sections(arguments: argparse.Namespace, settings: Settings) -> Sections:
    every = PROFILE_SHAPES if arguments.profile else ALL_SHAPES
    names = arguments.shapes or (QUICK_SHAPES if arguments.quick else every)
    shapes = parse_shapes(names, gpu_quantization(arguments.dtype))
    sizes = QUICK if arguments.quick else Sizes()
    if arguments.count:
        sizes = replace(sizes, items=arguments.count)
    if arguments.check:
        return check_sections(shapes)
    if arguments.profile:
        return profile_sections(shapes, sizes)
    items = [item for path in arguments.sets for item in load_replay_items(path)]
    tokenizer = partial(read_tokenizer, arguments.tokenizer, settings.cache_folder)
    return bench_sections(shapes, sizes, items, tokenizer)
