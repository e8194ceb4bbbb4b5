"""`foregram tune`: settings that are faster here than the default, and `foregram.toml` with them."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import partial
from typing import Any

import msgspec
from rich.box import SIMPLE
from rich.console import Group
from rich.table import Table
from rich.text import Text

from engine.bench.report import Setting, figure_table, plain
from engine.bench.tuning import (
    DECODING,
    DEFAULT,
    NGRAMS,
    NUM_ITEMS,
    WINDOWS,
    Compared,
    TextChangedError,
    Tuning,
    Variant,
)
from engine.config import PRESETS, Lookahead
from engine.engine import Engine
from lsp_server.cli.engine_arguments import load_engine
from lsp_server.cli.messages import INTERRUPTED, note
from lsp_server.cli.past_insertions import past_insertions
from lsp_server.cli.settings_file import add_settings
from lsp_server.cli.terminal import ProgressBars, print_figures
from lsp_server.settings import Settings, user_file

KEPT = 1  # exit status if the user says no
_BAR = 4  # characters of the default's speed
_SHADES = " ░▒▓█"  # up to the fastest


def tune(arguments: argparse.Namespace, settings: Settings) -> int:
    """Compare settings, show them, and write what is better. Raises ForegramError."""
    note("reading insertions from the git history")
    items = past_insertions(arguments.folder or arguments.given_in, NUM_ITEMS, settings)
    progress = ProgressBars()
    load = partial(_load, arguments, settings, progress)
    tuning, is_complete = Tuning(load, items, 60 * arguments.minutes, progress), True
    changed: TextChangedError | None = None
    try:
        tuning.run()
    except KeyboardInterrupt:
        is_complete = False
    except TextChangedError as error:  # a bug of ours; what is known is shown first
        is_complete, changed = False, error
    values = better_values(tuning.best)
    figures = Setting(tuning.engine.info, DECODING).as_json() | {
        "is_complete": is_complete,
        "better": values,
        "compared": [_json(one) for one in tuning.compared if one.ratios],
    }
    print_figures(arguments, figures, _tables(tuning, values))
    if changed:
        raise changed
    if not is_complete:
        return INTERRUPTED
    if not values:
        return 0
    with redirect_stdout(sys.stderr):  # apart from the line of JSON
        is_kept = not add_settings(user_file(), values, is_agreed=arguments.yes)
        note("a host that runs takes new settings after `foregram stop`")
    return KEPT if is_kept else 0


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
    caption = (
        "speed over the default's, tokens of a step, number of insertions; * others confirm it"
    )
    columns = ["setting", "value", ""], ["speed", "noise", "tokens", "of"]
    table = figure_table(*columns, title="beside the default", caption=caption)
    table.box = SIMPLE
    surface = tuning.surface
    drawn = [one for one in surface.values() if one.value not in PRESETS]
    for one in tuning.compared:
        if one.ratios and one not in drawn:
            table.add_row(*_row(one))
    said = "no setting is faster than the default by more than its noise"
    if values:
        said = "faster by more than its noise: " + ", ".join(map(_assigned, values.items()))
    setting = Setting(tuning.engine.info, DECODING).line
    return Group(table, _drawn(surface), setting, *_remarks(tuning.compared), said)


def _drawn(surface: Mapping[tuple[int, int], Compared]) -> Table:
    """Draw the speeds over W and N, the fastest the darkest."""
    windows = [f"W = G = {window}" for window in WINDOWS]
    table = figure_table([""], windows, title="speed of fixed lookahead", caption="")
    table.box = SIMPLE
    fastest = max((one.speed for one in surface.values()), default=1.0)
    for ngram in NGRAMS:
        cells = (surface.get((window, ngram)) for window in WINDOWS)
        table.add_row(f"N = {ngram}", *(_cell(one, fastest) if one else "-" for one in cells))
    return table


def _cell(one: Compared, fastest: float) -> Text:
    shade = _SHADES[int(one.speed / fastest * (len(_SHADES) - 1))]
    return Text(f"{one.speed:.2f} {2 * shade}", style=_colour(one))


def _remarks(compared: Iterable[Compared]) -> Iterator[str]:
    for one in compared:
        if one.is_better and one.axis == "rows":
            yield f"steps of at most {one.value} rows are faster; there is no setting for that"
        if one.is_open:
            yield f"{one.axis} {one.value} may be faster: more --minutes tell"
        if one.num_changed:
            of = one.num_changed + len(one.ratios)
            yield f"{one.axis} {one.value} changed the text of {one.num_changed} of {of}: near ties"


def _row(one: Compared) -> Iterator[str | Text]:
    yield one.axis
    wng = str(Lookahead.parse(str(one.value))) if one.value in PRESETS else ""
    yield f"{one.value} {wng}".rstrip() + " *" * one.is_confirmed
    yield Text("█" * round(_BAR * min(one.speed, 2)), style=_colour(one))
    yield f"{one.speed:.2f}"
    yield f"±{one.noise:.2f}" if one.noise < 1 else "large"
    yield f"{one.tokens_per_step:.1f}"
    yield str(len(one.ratios))


def _colour(one: Compared) -> str:
    is_slower = one.speed * (1 + one.noise) < 1
    return "green" if one.speed > 1 + one.noise else "red" if is_slower else ""


def _assigned(setting: tuple[str, str | int]) -> str:
    return "{} = {!r}".format(*setting)
