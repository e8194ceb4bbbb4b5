"""`foregram bench gpu`: what an NVIDIA GPU does, section by section."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from engine.bench.gpu.cases import cases_of
from engine.bench.gpu.inputs import QUICK, BenchInputs, Sizes
from engine.bench.gpu.kernel_check import GpuCheck
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.plot import draw_steps
from engine.bench.gpu.profile import GpuProfile
from engine.bench.gpu.run import GpuBench
from engine.bench.gpu.shapes import ALL_SHAPES, PROFILE_SHAPES, QUICK_SHAPES, Shape, parse_shapes
from engine.bench.gpu.tables import failures_table, section_table
from engine.bench.plots import Picture
from engine.bench.task_sets import load_replay_items
from engine.errors import ConfigurationError
from engine.model.device import gpu_quantization
from lsp_server.cli.terminal import ProgressBars
from lsp_server.settings import Settings

_PIPED_COLUMNS = 180  # of its tables, where no terminal says how wide it is


def bench_gpu(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure a GPU section by section; each is printed and saved when it is done."""
    picture = Picture(arguments.plot) if arguments.plot else None
    bench, saved = _bench(arguments, settings), Path(f"{arguments.save}.json")
    bench.findings.save(saved)  # a folder that is not there is better told of now
    console = _console()
    for name in _saved(bench, saved):
        shown = section_table(name, bench.findings)
        if shown is not None and not arguments.json:
            console.print(shown)
    if arguments.json:
        sys.stdout.write(json.dumps(bench.findings.as_json()) + "\n")
    elif (failures := failures_table(bench.findings)) is not None:
        console.print(failures)  # last of all
    if picture and (steps := cases_of(bench.findings.results.get("steps"))):
        picture.save(partial(draw_steps, steps))  # at the end: if it fails, no figures are lost


def _saved(bench: GpuBench, path: Path) -> Iterator[str]:
    """Run the sections, and save what was found after each."""
    for name in bench.run():
        bench.findings.save(path)
        yield name


def _console() -> Console:
    return Console(
        width=None if sys.stdout.isatty() else _PIPED_COLUMNS,
        markup=False,  # what libraries say of their failures has brackets of its own
        emoji=False,
    )


def _bench(arguments: argparse.Namespace, settings: Settings) -> GpuBench:
    # A device that has none of our kernels can be checked all the same.
    portable = Machine.without_kernels() if arguments.check else None
    machine, sizes = portable or Machine.gpu(), QUICK if arguments.quick else Sizes()
    if arguments.count:
        sizes = replace(sizes, items=arguments.count)
    progress = ProgressBars(Console(stderr=True))
    return _kind(arguments)(machine, _inputs(arguments, settings), progress, sizes)


def _kind(arguments: argparse.Namespace) -> type[GpuBench]:
    if arguments.check:
        return GpuCheck
    return GpuProfile if arguments.profile else GpuBench


def _inputs(arguments: argparse.Namespace, settings: Settings) -> BenchInputs:
    if arguments.sets and (arguments.profile or arguments.check):
        raise ConfigurationError("--profile and --check replay nothing: they take no sets")
    if arguments.plot and arguments.check:
        raise ConfigurationError("--check times no steps: it takes no --plot")
    return BenchInputs(
        shapes=_shapes(arguments),
        cache_folder=settings.cache_folder,
        tokenizer=arguments.tokenizer,
        items=[item for path in arguments.sets for item in load_replay_items(path)],
    )


def _shapes(arguments: argparse.Namespace) -> tuple[Shape, ...]:
    every = PROFILE_SHAPES if arguments.profile else ALL_SHAPES
    names = arguments.shapes or (QUICK_SHAPES if arguments.quick else every)
    return parse_shapes(names, gpu_quantization(arguments.dtype))
