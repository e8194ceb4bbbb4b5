"""`python -m tests.bench edits`: next edits of recorded scenarios, or edits asked for in words."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rich.console import Group
from rich.table import Table

from engine.bench.figures import Speed, percentile, speed_figures
from engine.bench.measured import Measured, measure
from engine.bench.report import Setting, figure_table, plain
from engine.bench.task_sets import read_rows
from engine.config import Lookahead, StopRules
from engine.engine import Engine
from engine.model_names import SMALLEST_MODEL
from engine.request import CompletionRequest, Cost, EditOutcome
from lsp_server.cli import command_parser
from lsp_server.cli.engine_arguments import LOOKAHEAD, MODEL, load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings
from tests.bench.asked_edits import asked_edits
from tests.bench.edit_items import EditItem, Scenario
from tests.bench.llama_cpp import Peer
from tests.bench.oracle import Oracle
from tests.bench.oracle_bench import load_items
from tests.bench.recorded_edits import verdict
from tests.bench.replay_bench import add_peer_options, check_peer_options, llama_cpp_peers

_OPTIONS = {
    "file PATH": "scenarios with recordings (FILE.jsonl.gz), or a folder of wheels with functions to "
    "edit",
    "--count N": "only the first N edits",
}
_NODES = 64  # drafted in each step where recorded answers are forced
_WHOLE = StopRules(max_tokens=2**20)  # more than any answer has: the engine's own limits hold


def add_options(parser: argparse.ArgumentParser) -> None:
    add_peer_options(parser)
    command_parser.add_options(parser, {**_OPTIONS, **MODEL, **LOOKAHEAD, **command_parser.JSON})


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    check_peer_options(arguments)
    if arguments.compare:
        arguments.model = arguments.model or settings.model or SMALLEST_MODEL
    items, recorded = _read(arguments.file)
    wanted = CompletionRequest("", "", lookahead=Lookahead.parse(arguments.lookahead), stop=_WHOLE)
    with (
        closing(load_engine(arguments, settings, ProgressBars())) as engine,
        ExitStack() as stack,
    ):
        peers: Mapping[str, Peer] = {}
        if arguments.compare:
            peer = llama_cpp_peers(arguments.model, arguments.llama_server)
            peers = stack.enter_context(peer)
        runs = [*run_edits(engine, tracked(items[: arguments.count], "edits"), wanted, peers)]
        setting = Setting(engine.info, wanted)
        forced = Oracle(engine.model.tokenizer, _NODES).scores(
            load_items(arguments.file) if recorded else ()
        )
    told: dict[str, Any] = {
        "recorded": recorded,
        "forced": {kind: one.tokens_per_step for kind, one in forced.items()},
        "kinds": {kind: edit_figures(some) for kind, some in by_kind(runs).items()},
        "peers": {name: peer.build for name, peer in peers.items()},
        "items": [one.told for one in runs],
    }
    tables = _recorded_table(recorded, told["forced"]), _table(told["kinds"])
    lines = (f"{name}: {build}" for name, build in told["peers"].items())
    print_figures(arguments, setting.as_json() | plain(told), Group(*tables, setting.line, *lines))


def _read(path: Path) -> tuple[Sequence[EditItem], dict[str, Counter[str]]]:
    """Return the edits to ask for, and what our readers make of recorded ones."""
    if path.is_dir():
        return asked_edits(path), {}
    scenarios = read_rows(path, Scenario.of, "scenario")
    return [item for one in scenarios for item in one.items], verdicts(scenarios)


def verdicts(scenarios: Iterable[Scenario]) -> dict[str, Counter[str]]:
    """Count by the kind of model what our reader makes of recorded answers."""
    counts = dict[str, Counter[str]]()
    for scenario in scenarios:
        history = scenario.items[0].task.history if scenario.items else ()
        for some in scenario.recorded:
            for one, following in zip_longest(some, some[1:]):
                counts.setdefault(one.kind, Counter())[verdict(one, following, history)] += 1
    return counts


@dataclass(frozen=True, slots=True)
class EditRun:
    """A generated edit. `peers` are their costs for as many tokens after the same prompt."""

    item: EditItem
    run: Measured
    peers: Mapping[str, Cost] = field(default_factory=dict)

    @property
    def outcome(self) -> EditOutcome:
        """The edit, or the reason why there is none."""
        refusal = f"ended by {self.run.on.finish_reason.value}"
        return self.run.on.edit or EditOutcome(refusal=refusal)

    @property
    def speeds(self) -> dict[str, float]:
        """Our speed with lookahead, as a multiple of the others."""
        others = {"off": self.run.off.cost, **self.peers}
        ours = Speed.of([self.run.on.cost])
        return {name: ours.over(Speed.of([cost])) for name, cost in others.items()}

    @property
    def told(self) -> dict[str, Any]:
        """The run as JSON has it."""
        cost = self.run.on.cost
        return {
            "id": self.item.id,
            "identical": self.run.is_identical,
            "text": self.run.on.text,
            "refusal": self.outcome.refusal,
            "probability": self.outcome.probability,
            "tokens": cost.tokens,
            "tokens_per_step": cost.tokens_per_step,
            "ms": cost.prefill_ms + cost.decode_ms,
            "judged": self.item.judged(self.outcome),
            "speeds": self.speeds,
        }


def run_edits(
    engine: Engine,
    items: Iterable[EditItem],
    wanted: CompletionRequest,
    peers: Mapping[str, Peer] = {},
) -> Iterator[EditRun]:
    """Generate each edit off and on in turn, then let the peers write as many tokens."""

    def ask(item: EditItem) -> CompletionRequest:
        return item.request(wanted)

    for item, run in measure(engine, items, ask):
        ids, tokens = engine.laid_out(ask(item))[0].ids, run.on.cost.tokens
        # The peer's first token belongs to its prefill, so it is never asked for a single one.
        asked = peers if tokens > 1 else {}
        yield EditRun(item, run, {name: one.decode(ids, tokens) for name, one in asked.items()})


def edit_figures(runs: Sequence[EditRun]) -> dict[str, Any]:
    """Sum up at least one run, of one kind."""
    speed = speed_figures([one.run for one in runs])
    judged = [one.item.judged(one.outcome) for one in runs]
    names = dict.fromkeys(name for one in judged for name in one)
    costs = [one.run.on.cost for one in runs]
    return {
        "items": speed.items,
        "identical": speed.identical,
        "tokens_per_step": speed.tokens_per_step,
        "ms_p50": percentile((one.prefill_ms + one.decode_ms for one in costs), 50),
        "judged": {name: fmean(one[name] for one in judged if name in one) for name in names},
        "refusals": Counter(one.outcome.refusal for one in runs if one.outcome.refusal),
        "accepted_by_source": speed.accepted_by_source,
        "speeds": {name: _speed_over(runs, name) for name in ("off", *runs[0].peers)},
    }


def _speed_over(runs: Sequence[EditRun], name: str) -> dict[str, float]:
    """Our speed as a multiple of another's: over all tokens, and the median of the edits."""
    known = [one for one in runs if name in one.speeds]
    others = [one.run.off.cost if name == "off" else one.peers[name] for one in known]
    return {
        "total": Speed.of([one.run.on.cost for one in known]).over(Speed.of(others)),
        "median": median(one.speeds[name] for one in known),
    }


def by_kind(runs: Iterable[EditRun]) -> dict[str, list[EditRun]]:
    """Group runs, with all of them together last."""
    kinds = dict[str, list[EditRun]]()
    for one in runs:
        kinds.setdefault(one.item.kind, []).append(one)
    every = [one for some in kinds.values() for one in some]
    return kinds | {"all": every} if len(kinds) > 1 else kinds


def _recorded_table(recorded: Mapping[str, Counter[str]], forced: Mapping[str, float]) -> Table:
    caption = "tokens per step: of drafting alone, with the recorded answers as the model's"
    table = figure_table(
        ["recorded by", "read as"], ["tokens/step"], title="recorded", caption=caption
    )
    for kind, counts in recorded.items():
        told = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        table.add_row(kind, told, f"{forced[kind]:.2f}")
    return table


def _table(figures: Mapping[str, Mapping[str, Any]]) -> Table:
    every = [*figures.values()]
    judged = [*dict.fromkeys(name for one in every for name in one["judged"])]
    others = [*every[0]["speeds"]]
    numbers = ("edits", "identical", *judged, "tokens/step", "ms p50", *(f"/ {o}" for o in others))
    caption = "speed with lookahead as a multiple of others: over all tokens, median of the edits"
    table = figure_table(["kind"], numbers, title="edits", caption=caption)
    for kind, one in figures.items():
        shares = [f"{one['identical']:.0%}"]
        shares += [f"{one['judged'][name]:.0%}" if name in one["judged"] else "" for name in judged]
        speeds = (one["speeds"][name] for name in others)
        table.add_row(
            kind,
            str(one["items"]),
            *shares,
            f"{one['tokens_per_step']:.2f}",
            f"{one['ms_p50']:.0f}",
            *(f"{each['total']:.2f} ({each['median']:.2f})" for each in speeds),
        )
    return table
