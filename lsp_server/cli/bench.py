"""`foregram bench`: how fast text is decoded, what a step takes, what a GPU does."""

import argparse
import json
import sys
from contextlib import closing
from pathlib import Path

from rich.console import Console

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.run import GpuBench, Sections, Sizes, bench_sections, check_shape, of_each
from engine.bench.gpu.shapes import SHAPES, parse_shapes
from engine.bench.measured import run_replay
from engine.bench.report import Setting, plain, replay_json, replay_tables
from engine.bench.step import CONTEXTS, measure_steps, steps_table
from engine.bench.task_sets import load_replay_items
from engine.model.gpu.quantization import gpu_quantization
from lsp_server.cli.engine_arguments import decoding, load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings

_PIPED_COLUMNS = 180  # characters of a line in tables that go to a pipe, which has no width


def bench_replay(arguments: argparse.Namespace, settings: Settings) -> None:
    """Decode a replay set with lookahead off and on."""
    items = load_replay_items(arguments.file, arguments.count)
    wanted = decoding(arguments)
    with closing(load_engine(arguments, settings, ProgressBars())) as engine:
        runs = run_replay(engine, tracked(items, "items"), wanted)
        setting = Setting(engine.info, wanted)
    print_figures(arguments, replay_json(runs, setting), replay_tables(runs, setting))


def bench_step(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure what steps of the model take here."""
    with closing(load_engine(arguments, settings, ProgressBars())) as engine:
        times = [*measure_steps(engine.model.causal_lm, tracked(CONTEXTS, "contexts"))]
        print_figures(arguments, {"steps": plain(times)}, steps_table(times, engine.info))


def bench_gpu(arguments: argparse.Namespace, _settings: Settings) -> None:
    """Measure a GPU, or only check its kernels."""
    shapes = parse_shapes(arguments.shapes or ",".join(SHAPES), gpu_quantization(arguments.dtype))
    if arguments.check:
        # A device without kernels of ours can be checked, too.
        machine = Machine.without_kernels() or Machine.gpu()
        run_sections(arguments, machine, of_each(shapes, "kernels", check_shape))
    else:
        run_sections(arguments, Machine.gpu(), bench_sections(shapes, Sizes()))


def run_sections(arguments: argparse.Namespace, machine: Machine, sections: Sections) -> None:
    """Measure section by section; each is printed and saved when it is done."""
    saved = Path(f"{arguments.save}.json")
    bench = GpuBench(machine, sections, ProgressBars())
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
