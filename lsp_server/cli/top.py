"""`foregram top`: what the host does, live, in the words of `status`, its metrics and `why`."""

import argparse
import asyncio
import os
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lsp_server.cli.host_commands import status_rows, table_of, tell_absence
from lsp_server.cli.messages import visible
from lsp_server.cli.why import latest, line_of
from lsp_server.host.client import ProbeResult, host_metrics, host_status
from lsp_server.host.daemon import explained
from lsp_server.host.figures import Counts, Figures, counts_of
from lsp_server.saved import Day, saved_days, today
from lsp_server.settings import Settings
from lsp_server.why import EmptyAnswer, Kept

_EVERY_S = 1.0
_MOST_LOOKS = 61  # the first and the last are a minute apart
_MOST_REASONS = 5
_FIRST_ROWS = ("state", "requests", "clients", "memory")
_SINCE_START, _LAST_MINUTE, _LAST = "since its start", "last minute", "last completion"


class _Look(NamedTuple):
    answer: ProbeResult
    counts: Counts  # empty where the host does not show them


def show_top(arguments: argparse.Namespace, settings: Settings) -> int:
    """Watch the host until q or Ctrl-C, or print its figures once; return 1 without a host."""
    first = asyncio.run(_look(settings))
    if first.answer.status is None:
        return tell_absence(first.answer, as_json=arguments.json)
    if arguments.json:
        sys.stdout.write(msgspec.json.encode(_for_programs(first, settings)).decode() + "\n")
    elif arguments.once or not sys.stdout.isatty() or Console().is_dumb_terminal:
        Console().print(_view([first], settings, is_live=False), soft_wrap=True)
    else:
        asyncio.run(_watch(first, settings))
    return 0


async def _look(settings: Settings) -> _Look:
    answer = explained(settings, await host_status(settings))
    return _Look(answer, counts_of(await host_metrics(settings) if answer.status else ""))


async def _watch(first: _Look, settings: Settings) -> None:
    looks = deque([first], maxlen=_MOST_LOOKS)
    live = Live(screen=True, auto_refresh=False)
    with suppress(asyncio.CancelledError), _keyboard(), live:
        while True:
            live.update(_view(looks, settings, is_live=True), refresh=True)
            await asyncio.sleep(_EVERY_S)
            former, look = looks[-1].counts, await _look(settings)
            if not former or _tokens(look.counts) < _tokens(former):
                looks.clear()  # the host has been away, or is another one
            looks.append(look)


@contextmanager
def _keyboard() -> Iterator[None]:
    """Have q cancel the current task, where there is a keyboard, as Ctrl-C does."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    if task is None or not sys.stdin.isatty():
        yield
        return
    keys = sys.stdin.fileno()
    before = termios.tcgetattr(keys)
    loop.add_reader(keys, lambda: b"q" in os.read(keys, 100).lower() and task.cancel())
    try:
        tty.setcbreak(keys)
        yield
    finally:
        loop.remove_reader(keys)
        termios.tcsetattr(keys, termios.TCSADRAIN, before)


def _tokens(counts: Counts) -> float:
    return counts["tokens_total", ""]


def _figures(looks: Sequence[_Look]) -> dict[str, Figures]:
    """Return the figures of each column; without the host's, those of the user's last completion."""
    then, now = looks[0].counts, looks[-1].counts
    if now:
        recent = {_LAST_MINUTE: Figures.of(now - then)} if len(looks) > 1 else {}
        return {**recent, _SINCE_START: Figures.of(now)}
    status = looks[-1].answer.status
    return {_LAST: Figures.of_one(status.last_prompt)} if status and status.last_prompt else {}


def _reasons(settings: Settings) -> list[EmptyAnswer]:
    return latest(Kept.read_all(settings.runtime_folder), _MOST_REASONS)


def _for_programs(look: _Look, settings: Settings) -> dict[str, Any]:
    return {
        "status": look.answer.status,
        "figures": {name.replace(" ", "_"): one for name, one in _figures([look]).items()},
        "reasons": [answer.shown() for answer in _reasons(settings)],
        "saved_today": saved_days(settings.cache_folder).get(today(), Day()),
    }


def _view(looks: Sequence[_Look], settings: Settings, *, is_live: bool) -> RenderableType:
    """Show first what people watch: a terminal of 24 lines has no room for all of it."""
    answer = looks[-1].answer
    lines = [visible(line_of(one, time.time())) for one in _reasons(settings)]
    reasons = [Text(line, no_wrap=is_live or None) for line in lines]
    if answer.status is None:
        return Group(Text(visible(answer.reason)), Text(), *reasons)
    rest = status_rows(answer.status, settings)
    first = table_of({name: rest.pop(name) for name in _FIRST_ROWS})
    figures = _table(_figures(looks))
    return Group(first, Text(), *reasons, Text(), figures, Text(), table_of(rest))


def _table(figures: dict[str, Figures]) -> Table:
    table = Table("", *figures, box=None, padding=(0, 2, 0, 0))
    cells = [_cells(one) for one in figures.values()]
    for name in dict.fromkeys(name for column in reversed(cells) for name in column):
        table.add_row(Text(name), *(Text(column.get(name, "-")) for column in cells))
    return table


def _cells(figures: Figures) -> dict[str, str]:
    one, sources = figures, figures.tokens_per_step_by_source
    acceptance = one.draft_acceptance
    told = [f"{number:,} {kind.replace('_', ' ')}" for kind, number in one.feedback.items()]
    return {
        "tokens per second": _rounded(one.tokens_per_second),
        "  without lookahead": _rounded(one.plain_tokens_per_second),
        "drafted tokens accepted": "-" if acceptance is None else f"{acceptance:.0%}",
        "wait in the queue, ms": _rounded(one.queue_ms),
        "reading the prompt, ms": _rounded(one.prefill_ms),
        "tokens per step": _rounded(one.tokens_per_step, 2),
        **{f"  from {name}": _rounded(share, 2) for name, share in sources.items()},
        "completions": f"{one.completions:,}",
        "tokens": f"{one.tokens:,}",
        "what users did": ", ".join(told) or "-",
        "characters accepted": f"{one.accepted_characters:,}",
    }


def _rounded(number: float | None, digits: int = 1) -> str:
    return "-" if number is None else f"{number:,.{digits}f}"
