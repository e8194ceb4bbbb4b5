"""`foregram bench`: the command line's words become calls of `engine.bench`, its reports output."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console, RenderableType

from engine.bench.calibration import (
    calibration_figures,
    calibration_json,
    calibration_table,
    read_choices,
)
from engine.bench.crossfile import ARMS, crossfile_json, crossfile_table, run_crossfile
from engine.bench.fim import fim_json, fim_tables, run_fim
from engine.bench.forced import load_forced
from engine.bench.gpu.inputs import QUICK, BenchInputs, Sizes
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.picture import draw, plots_are_possible
from engine.bench.gpu.profile import GpuProfile
from engine.bench.gpu.run import GpuBench
from engine.bench.gpu.shapes import ALL_SHAPES, PROFILE_SHAPES, QUICK_SHAPES, parse_shapes
from engine.bench.gpu.tables import failures_table, section_table, thresholds_table
from engine.bench.measured import Bench
from engine.bench.oracle import Oracle, load_tokenizer
from engine.bench.oracle_score import oracle_json, oracle_table
from engine.bench.peers import opened_peers
from engine.bench.plots import Picture, draw_calibration, draw_replay, draw_steps
from engine.bench.pool import measure_pool
from engine.bench.quantization import measure_quantizations, quantization_json, quantization_table
from engine.bench.replay import ReplayReport, replay_json, replay_tables, run_replay
from engine.bench.report import Setting
from engine.bench.requests import without_rules
from engine.bench.step import (
    MachineLimits,
    cases,
    int8_model,
    measure_steps,
    steps_json,
    steps_table,
)
from engine.bench.task_sets import (
    ReplayItem,
    load_crossfile_tasks,
    load_fim_tasks,
    load_replay_items,
)
from engine.engine import Engine
from engine.errors import ConfigurationError
from engine.model.device import choose_device
from engine.model_names import DEFAULT_MODEL
from engine.options import wanted_model
from lsp_server.cli.code_places import mid_line_places
from lsp_server.cli.crossfile_index import CrossfileIndex
from lsp_server.cli.engine_arguments import decoding
from lsp_server.cli.engine_loading import engine_options, load_engine
from lsp_server.cli.syntax_bench import measure_syntax
from lsp_server.cli.terminal import ProgressBars, tracked
from lsp_server.settings import Settings

_PIPED_COLUMNS = 180  # of the GPU's tables, where no terminal says how wide it is


def bench_replay(arguments: argparse.Namespace, settings: Settings) -> None:
    """Decode a replay set with lookahead off and on, or let its targets play the model."""
    items = load_replay_items(arguments.file, arguments.count)
    if arguments.oracle:
        _bench_oracle(items, arguments, settings)
        return
    picture = Picture(arguments.plot) if arguments.plot else None
    replayed = _forced if arguments.oracle_forced else _replayed
    report, setting = replayed(items, arguments, settings)
    _print(arguments, replay_json(report, setting), replay_tables(report, setting))
    if picture:
        picture.save(partial(draw_replay, report))


def bench_fim(arguments: argparse.Namespace, settings: Settings) -> None:
    """Complete and score fill-in-the-middle tasks."""
    tasks = load_fim_tasks(arguments.file, arguments.count, mid_line_only=arguments.mid_line)
    with _engine(arguments, settings) as engine, _bench(engine, arguments, settings) as bench:
        runs = run_fim(bench, tracked(tasks, "tasks"), decoding(arguments))
    setting = _setting(engine, arguments, bench)
    _print(arguments, fim_json(runs, setting), fim_tables(runs, setting))


def bench_syntax(arguments: argparse.Namespace, settings: Settings) -> None:
    """Count the suggestions inside lines of real files that leave code broken."""
    places = mid_line_places(arguments.paths, arguments.count, arguments.seed)
    if not places:
        raise ConfigurationError("no file among these has a grammar and a call, list or signature")
    with _engine(arguments, settings) as engine:
        figures = measure_syntax(engine, tracked(places, "places"), settings.min_confidence)
    _print(arguments, asdict(figures), figures.table())


def bench_crossfile(arguments: argparse.Namespace, settings: Settings) -> None:
    """Complete tasks with no other file, with those that a person would have open, and with others.

    The prompt is as long as a host on this machine would have it, unless somebody says otherwise.
    """
    trees = arguments.trees or arguments.file.parent / "trees"
    tasks = load_crossfile_tasks(arguments.file, trees, arguments.count, arguments.stratum)
    arms = arguments.arms or ARMS
    cases = tracked(
        [*product(tasks, ["none", *(arm for arm in arms if arm != "none")])], "completions"
    )
    with _engine(arguments, settings) as engine, ExitStack() as closing_all:
        folder = Path(closing_all.enter_context(TemporaryDirectory(prefix="foregram-")))
        index = CrossfileIndex(folder, closing_all)
        wanted = decoding(arguments)
        runs = [run_crossfile(engine, task, arm, wanted, index.retrieve) for task, arm in cases]
    setting = _setting(engine, arguments)
    _print(arguments, crossfile_json(runs, setting), crossfile_table(runs, setting))


def bench_pool(arguments: argparse.Namespace, _settings: Settings) -> None:
    """Measure the n-gram pool alone."""
    figures = measure_pool(arguments.tokens)
    _print(arguments, asdict(figures), figures.table())


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
    )
    _print(arguments, quantization_json(figures), quantization_table(figures))


def bench_calibration(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure whether the model is right as often as it says, before and after a fit."""
    picture = Picture(arguments.plot) if arguments.plot else None
    items = load_replay_items(arguments.file, arguments.count)
    with _engine(arguments, settings) as engine:
        read = tracked(items, "items")
        tokens = read_choices(engine.model, read, engine.prompt, decoding(arguments))
    figures = calibration_figures(tokens)
    _print(arguments, calibration_json(figures), calibration_table(figures))
    if picture:
        picture.save(partial(draw_calibration, figures))


def _bench_oracle(
    items: Sequence[ReplayItem], arguments: argparse.Namespace, settings: Settings
) -> None:
    model = arguments.model or settings.model
    oracle = Oracle(load_tokenizer(model, settings.cache_folder, ProgressBars()))
    scores = oracle.run(tracked(items, "items"))
    _print(arguments, oracle_json(scores), oracle_table(scores))


def _replayed(
    items: Sequence[ReplayItem], arguments: argparse.Namespace, settings: Settings
) -> tuple[ReplayReport, Setting]:
    wanted = decoding(arguments)
    if not arguments.stop_rules:
        stop = without_rules(arguments.max_tokens)
        wanted = replace(wanted, stop=replace(stop, min_confidence=arguments.min_confidence))
    with _engine(arguments, settings) as engine, _bench(engine, arguments, settings) as bench:
        report = run_replay(bench, tracked(items, "items"), wanted)
    return report, _setting(engine, arguments, bench)


def _forced(
    items: Sequence[ReplayItem], arguments: argparse.Namespace, settings: Settings
) -> tuple[ReplayReport, Setting]:
    """Have the model say the targets. What it learns of them is no user's, and is forgotten."""
    if arguments.compare:
        raise ConfigurationError("--oracle-forced has no peers to --compare: they say their own")
    wanted = decoding(arguments)
    with TemporaryDirectory(prefix="foregram-") as folder:
        replay = load_forced(engine_options(arguments, settings), Path(folder), ProgressBars())
        report = replay.run(tracked(items, "items"), wanted)
    return report, _setting(replay.engine, arguments)


def bench_step(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure where a step's time goes on this processor."""
    picture = Picture(arguments.plot) if arguments.plot else None
    loaded = wanted_model(engine_options(arguments, settings), ProgressBars())
    model = int8_model(loaded.causal_lm)
    times = list(measure_steps(model, tracked(cases(), "steps")))
    limits = MachineLimits.measure(model.weights)
    _print(arguments, steps_json(times, limits), steps_table(times, limits))
    if picture:
        picture.save(partial(draw_steps, times, limits))


def bench_gpu(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure a GPU section by section; each is printed and saved when it is done."""
    machine, sizes = Machine.gpu(), QUICK if arguments.quick else Sizes()
    if arguments.count:
        sizes = replace(sizes, items=arguments.count)
    errors = Console(stderr=True)
    console = Console(
        width=None if sys.stdout.isatty() else _PIPED_COLUMNS,
        markup=False,  # what libraries say of their failures has brackets of its own
        emoji=False,
    )
    inputs = _gpu_inputs(arguments, settings)
    kind = GpuProfile if arguments.profile else GpuBench
    bench = kind(machine, inputs, ProgressBars(errors), sizes)
    saved = Path(f"{arguments.save}.json")
    bench.findings.save(saved)  # a folder that is not there is better told of now
    can_draw = not arguments.profile and plots_are_possible()
    if not can_draw and not arguments.profile:
        errors.print("foregram: no picture without matplotlib: pip install 'foregram[plots]'")
    for name in bench.run():
        bench.findings.save(saved)
        shown = section_table(name, bench.findings)
        if shown is not None and not arguments.json:
            console.print(shown)
    if arguments.json:
        sys.stdout.write(json.dumps(bench.findings.as_json()) + "\n")
    else:
        if not arguments.profile:
            console.print(thresholds_table(bench.findings.thresholds))
        if (failures := failures_table(bench.findings)) is not None:
            console.print(failures)  # last of all
    if can_draw:  # at the end: a picture that fails takes no figures along
        draw(bench.findings.results, Path(f"{arguments.save}.png"))


def _gpu_inputs(arguments: argparse.Namespace, settings: Settings) -> BenchInputs:
    if arguments.chat and not arguments.model:
        raise ConfigurationError("--chat asks a real model: name one with --model")
    if arguments.profile and (arguments.sets or arguments.model):
        raise ConfigurationError("--profile measures kernels alone: no sets and no --model")
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


def _engine(arguments: argparse.Namespace, settings: Settings) -> "closing[Engine]":
    return closing(load_engine(arguments, settings, ProgressBars()))


@contextmanager
def _bench(engine: Engine, arguments: argparse.Namespace, settings: Settings) -> Iterator[Bench]:
    """The engine beside the peers that it is compared to."""
    if arguments.llama_server and "llama-cpp" not in arguments.compare:
        raise ConfigurationError("--llama-server says which llama.cpp: add --compare llama-cpp")
    if not arguments.compare:
        yield Bench(engine)
        return
    model = arguments.model or settings.model or DEFAULT_MODEL
    own = arguments.llama_server
    with opened_peers(arguments.compare, model, ProgressBars(), llama_server=own) as peers:
        yield Bench(engine, peers)


def _setting(engine: Engine, arguments: argparse.Namespace, bench: Bench | None = None) -> Setting:
    chosen = ("max_tokens", "layout", "lookahead", "temperature", "seed", "min_confidence")
    return Setting(
        **asdict(engine.info),
        **{name: getattr(arguments, name) for name in chosen},
        builds={name: peer.build for name, peer in bench.peers.items()} if bench else {},
    )


def _print(
    arguments: argparse.Namespace, answer: Mapping[str, Any], tables: RenderableType
) -> None:
    if arguments.json:
        sys.stdout.write(json.dumps(answer) + "\n")
    else:
        Console().print(tables)
