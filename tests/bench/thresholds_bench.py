"""`python -m tests.bench thresholds`: what a person gains under other limits, played from recordings.

A model's greedy texts are recorded once, at the cursors of a trace. Limits are then compared in
seconds, without the model: the same person types, and the product's own rules end and judge texts.
"""

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import product

from rich.table import Table

from engine.bench.measured import WARM_UP
from engine.bench.report import figure_table, plain
from engine.errors import ConfigurationError
from lsp_server.cli import command_parser
from lsp_server.cli.engine_arguments import MODEL, load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings
from tests.bench.simulated.recorded.playback import Limits
from tests.bench.simulated.recorded.recording import Recording, load_recordings, recorded, written
from tests.bench.simulated.recorded.sitting import RecordedSitting, Recordings, VirtualClock
from tests.bench.simulated.sides import AssistedTrace, Effort
from tests.bench.simulated.traces import Trace, load_traces
from tests.bench.simulated.typing_figures import TypingFigures, typing_figures
from tests.bench.simulated.typist import Typist

_BEGINNINGS, _LINES = (0.5, 0.6, 0.7, 0.8), (0.2, 0.3, 0.4)


def add_options(parser: argparse.ArgumentParser) -> None:
    options = {
        "file SET.jsonl": "a replay set",
        "--count N": "only the first N insertions",
        "--recordings FILE": "where recordings are kept; what is missing there is recorded",
        "--pace P =1": "times the recorded seconds, if the machine was busy; 1 by default",
        "--seed SEED =1": "the person's pace; 1 by default",
        "--prompt-tokens N": "the longest prompt; by default that of a host on this machine",
    }
    command_parser.add_options(parser, {**options, **MODEL, **command_parser.JSON})


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    if arguments.recordings is None:
        raise ConfigurationError("name a file that keeps the recordings, with --recordings FILE")
    traces = load_traces(arguments.file, arguments.count)
    known = _recordings(arguments, settings, traces)
    halves = _halves(traces)
    figures = {}
    for limits in tracked([Limits(*one) for one in product(_BEGINNINGS, _LINES)], "limits"):
        runs = asyncio.run(_typed(arguments, settings, traces, known, limits))
        figures[f"{limits.beginning} / {limits.line}"] = {
            name: typing_figures([run for run in runs if run.typed.id in ids])
            for name, ids in halves.items()
        }
    print_figures(arguments, {"limits": plain(figures)}, _table(figures, list(halves)))


def _halves(traces: Sequence[Trace]) -> Mapping[str, frozenset[str]]:
    """Divide traces by package, so that limits are judged on packages that they do not come from."""
    packages = sorted({_package(one) for one in traces})
    chosen = frozenset(one.id for one in traces if packages.index(_package(one)) % 2 == 0)
    others = frozenset(one.id for one in traces) - chosen
    return {"one half": chosen} | ({"the other": others} if others else {})


def _package(trace: Trace) -> str:
    return trace.id.split("/")[1] if "/" in trace.id else trace.id


def _recordings(
    arguments: argparse.Namespace, settings: Settings, traces: Sequence[Trace]
) -> Mapping[str, Mapping[int, Recording]]:
    """Return the recordings by trace and position, after making those that are missing."""
    known: dict[str, dict[int, Recording]] = {}
    kept = arguments.recordings
    for one in load_recordings(kept) if kept.exists() else ():
        known.setdefault(one.trace, {})[one.position] = one
    missing = [one for one in traces if one.id not in known]
    for trace, made in _made(arguments, settings, missing):
        with kept.open("ab") as file:
            file.writelines(written(made))
        known[trace.id] = {one.position: one for one in made}
    return known


def _made(
    arguments: argparse.Namespace, settings: Settings, traces: Sequence[Trace]
) -> Iterator[tuple[Trace, Sequence[Recording]]]:
    if not traces:
        return
    with closing(load_engine(arguments, settings, ProgressBars())) as engine:
        engine.complete(WARM_UP)
        for trace in tracked(traces, "traces"):
            yield trace, list(recorded(engine, trace))


async def _typed(
    arguments: argparse.Namespace,
    settings: Settings,
    traces: Sequence[Trace],
    known: Mapping[str, Mapping[int, Recording]],
    limits: Limits,
) -> Sequence[AssistedTrace]:
    clock, runs = VirtualClock(), list[AssistedTrace]()
    typist = Typist(arguments.seed, clock)
    for trace in traces:
        played = Recordings(trace, known[trace.id], limits, settings, arguments.pace)
        sitting = RecordedSitting(played, clock)
        typed = await typist.type(trace, sitting)
        runs.append(AssistedTrace(typed, Effort(requests=sitting.num_begun)))
    return runs


def _table(figures: Mapping[str, Mapping[str, TypingFigures]], halves: Sequence[str]) -> Table:
    columns = [f"{name}: {what}" for name in halves for what in ("saved", "wrong", "in 200 ms")]
    caption = "keystrokes saved, wrong of the characters shown, keys with ghost text"
    title = "a sure beginning's least probability / a whole line's"
    table = figure_table(["limits"], columns, title=title, caption=caption)
    for limits, by_half in figures.items():
        cells = [
            f"{share:.1%}"
            for name in halves
            for one in [by_half[name]]
            for share in (one.keystrokes_saved, one.wrong_share, one.keys_with_ghost["200"])
        ]
        table.add_row(limits, *cells)
    return table
