"""`foregram bench gpu`: everything about an NVIDIA GPU, section by section."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from engine.bench.gpu.inputs import QUICK, BenchInputs, Sizes
from engine.bench.gpu.kernel_check import GpuCheck
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.picture import draw, plots_are_possible
from engine.bench.gpu.portable_check import PortableCheck
from engine.bench.gpu.profile import GpuProfile
from engine.bench.gpu.run import GpuBench
from engine.bench.gpu.shapes import ALL_SHAPES, PROFILE_SHAPES, QUICK_SHAPES, parse_shapes
from engine.bench.gpu.tables import failures_table, section_table, thresholds_table
from engine.bench.task_sets import load_fim_tasks, load_replay_items
from engine.errors import ConfigurationError
from lsp_server.cli.terminal import ProgressBars
from lsp_server.settings import Settings

_PIPED_COLUMNS = 180  # of its tables, where no terminal says how wide it is


def bench_gpu(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure a GPU section by section; each is printed and saved when it is done."""
    # A device that has none of our kernels can be checked all the same.
    portable = Machine.without_kernels() if arguments.check else None
    machine, sizes = portable or Machine.gpu(), QUICK if arguments.quick else Sizes()
    if arguments.count:
        sizes = replace(sizes, items=arguments.count)
    errors = Console(stderr=True)
    console = Console(
        width=None if sys.stdout.isatty() else _PIPED_COLUMNS,
        markup=False,  # what libraries say of their failures has brackets of its own
        emoji=False,
    )
    inputs = _gpu_inputs(arguments, settings)
    kind = PortableCheck if portable else _kind(arguments)
    bench = kind(machine, inputs, ProgressBars(errors), sizes)
    saved = Path(f"{arguments.save}.json")
    bench.findings.save(saved)  # a folder that is not there is better told of now
    is_whole = not (arguments.profile or arguments.check)
    can_draw = is_whole and plots_are_possible()
    if is_whole and not can_draw:
        errors.print("foregram: no picture without matplotlib: pip install 'foregram[plots]'")
    for name in bench.run():
        bench.findings.save(saved)
        shown = section_table(name, bench.findings)
        if shown is not None and not arguments.json:
            console.print(shown)
    if arguments.json:
        sys.stdout.write(json.dumps(bench.findings.as_json()) + "\n")
    else:
        if is_whole:
            console.print(thresholds_table(bench.findings.thresholds))
        if (failures := failures_table(bench.findings)) is not None:
            console.print(failures)  # last of all
    if can_draw:  # at the end: a picture that fails takes no figures along
        draw(bench.findings.results, Path(f"{arguments.save}.png"))


def _kind(arguments: argparse.Namespace) -> type[GpuBench]:
    if arguments.check:
        return GpuCheck
    return GpuProfile if arguments.profile else GpuBench


def _gpu_inputs(arguments: argparse.Namespace, settings: Settings) -> BenchInputs:
    if arguments.chat and not arguments.model:
        raise ConfigurationError("--chat asks a real model: name one with --model")
    if arguments.sets or arguments.model:
        for option in ("profile", "check"):
            if getattr(arguments, option):
                raise ConfigurationError(
                    f"--{option} measures kernels alone: no sets and no --model"
                )
    every = PROFILE_SHAPES if arguments.profile else ALL_SHAPES
    return BenchInputs(
        shapes=parse_shapes(arguments.shapes or (QUICK_SHAPES if arguments.quick else every)),
        cache_folder=settings.cache_folder,
        tokenizer=arguments.tokenizer,
        model=arguments.model,
        dtype=arguments.dtype,
        items=[item for path in arguments.sets for item in load_replay_items(path)],
        tasks=load_fim_tasks(arguments.chat) if arguments.chat else (),
    )
