"""`foregram bench gpu`: what a GPU does. Importing this loads PyTorch."""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.run import GpuBench, Sections, Sizes, bench_sections, check_shape, of_each
from engine.bench.gpu.shapes import SHAPES, Shape, parse_shapes
from engine.model.gpu.quantization import gpu_quantization
from lsp_server.cli.terminal import ProgressBars

_PIPED_COLUMNS = 180  # characters of a line in tables that go to a pipe, which has no width


def measure_gpu(arguments: argparse.Namespace) -> None:
    """Measure the steps and kernels of the shapes that are asked for."""
    run_sections(arguments, Machine.gpu(), bench_sections(_shapes(arguments), Sizes()))


def check_gpu(arguments: argparse.Namespace) -> None:
    """Check the kernels, and on a device without kernels of ours what runs there instead."""
    machine = Machine.without_kernels() or Machine.gpu()
    run_sections(arguments, machine, of_each(_shapes(arguments), "kernels", check_shape))


def _shapes(arguments: argparse.Namespace) -> tuple[Shape, ...]:
    return parse_shapes(arguments.shapes or ",".join(SHAPES), gpu_quantization(arguments.dtype))


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
