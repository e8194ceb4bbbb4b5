"""`foregram tune`: settings that are faster here than the default, and `foregram.toml` with them."""

import argparse
import sys
from functools import partial
from typing import Any

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from engine.bench.report import Setting, figure_table, plain
from engine.bench.tuning import DECODING, DEFAULT, NUM_ITEMS, Compared, Tuning, Variant
from engine.engine import Engine
from lsp_server.cli.engine_arguments import load_engine
from lsp_server.cli.messages import INTERRUPTED, agreed, note
from lsp_server.cli.past_insertions import past_insertions
from lsp_server.cli.settings_file import write_settings
from lsp_server.cli.terminal import ProgressBars, print_figures
from lsp_server.settings import Settings, own_settings_path

KEPT = 1  # exit status if the user says no
_BAR = 10  # characters of the default's speed


def tune(arguments: argparse.Namespace, settings: Settings) -> int:
    """Compare settings, show them, and write what is better. Raises ForegramError."""
    note("reading insertions from the git history")
    items = past_insertions(arguments.folder or arguments.given_in, NUM_ITEMS, settings)
    progress = ProgressBars()
    load = partial(_load, arguments, settings, progress)
    tuning, is_over = Tuning(load, items, 60 * arguments.minutes, progress), True
    try:
        tuning.run()
    except KeyboardInterrupt:
        is_over = False
    values = better_values(tuning.best)
    figures = Setting(tuning.engine.info, DECODING).as_json() | {
        "is_over": is_over,
        "better": values,
        "compared": [_json(one) for one in tuning.compared if one.ratios],
    }
    print_figures(arguments, figures, _tables(tuning, values))
    if not is_over:
        return INTERRUPTED
    return _written(values, is_agreed=arguments.yes) if values else 0


def _load(
    arguments: argparse.Namespace, settings: Settings, progress: ProgressBars, threads: int | None
) -> Engine:
    chosen = msgspec.structs.replace(settings, threads=threads, prompt_tokens=None)
    return load_engine(arguments, chosen, progress)


def better_values(best: Variant) -> dict[str, str | int]:
    """Return the settings that differ from the default."""
    values = plain(best)
    return {name: value for name, value in values.items() if value != getattr(DEFAULT, name)}


def _json(one: Compared) -> dict[str, Any]:
    return {
        "axis": one.axis,
        "value": one.value,
        "is_confirmed": one.is_confirmed,
        "is_better": one.is_better,
        "items": len(one.ratios),
        **plain({"speed": one.speed, "noise": one.noise, "tokens_per_step": one.tokens_per_step}),
    }


def _tables(tuning: Tuning, values: dict[str, str | int]) -> Group:
    caption = "speed over the default's; * on insertions that did not choose it"
    columns = ["setting", "value", ""], ["speed", "noise", "tokens/step", "insertions"]
    table = figure_table(*columns, title="beside the default", caption=caption)
    for one in tuning.compared:
        if one.ratios:
            _add(table, one)
    said = "nothing is faster than the default by more than its noise"
    if values:
        said = "faster by more than its noise: " + ", ".join(map(_assigned, values.items()))
    return Group(table, Setting(tuning.engine.info, DECODING).line, said)


def _add(table: Table, one: Compared) -> None:
    colour = "green" if one.speed > 1 + one.noise else "red" if one.speed < 1 - one.noise else ""
    table.add_row(
        one.axis,
        f"{one.value}{' *' if one.is_confirmed else ''}",
        Text("█" * round(_BAR * min(one.speed, 2)), style=colour),
        f"{one.speed:.2f}",
        f"±{one.noise:.2f}",
        f"{one.tokens_per_step:.2f}",
        str(len(one.ratios)),
    )


def _assigned(setting: tuple[str, str | int]) -> str:
    return "{} = {!r}".format(*setting)


def _written(values: dict[str, str | int], *, is_agreed: bool) -> int:
    path = own_settings_path()
    if not is_agreed and not sys.stdin.isatty():
        note("nothing was written: `foregram tune --yes` does it without asking")
        return 0
    if not is_agreed and not agreed(f"Write this into {path}?"):
        return KEPT
    write_settings(path, values)
    note(f"{path} has it; a host that runs takes it after `foregram stop`")
    return 0
