#!/usr/bin/env python3
"""Summarise a table of working hours.

Reads a CSV file with the columns ``day``, ``person``, ``project`` and ``hours``, and
writes totals by person or by project, as text or as JSON:

    report.py hours.csv --by project --since 2024-01-01 --format json
"""

import argparse
import csv
import functools
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple, ParamSpec, TextIO, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

FORMATS: dict[str, Callable[[dict[str, float]], str]] = {}
ALIASES = {
    "ops": "operations",
    "dev": "development",
    "mtg": "meetings",
}


class Entry(NamedTuple):
    day: date
    person: str
    project: str
    hours: float = 0.0


def timed(label: str, out: TextIO = sys.stderr) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Say on ``out`` how long each call of the function took."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                print(f"{label}: {(time.perf_counter() - start) * 1000:.1f} ms", file=out)

        return wrapper

    return decorate


def format_as(name: str):
    def register(function):
        FORMATS[name] = function
        return function

    return register


@format_as("text")
def as_text(totals: dict[str, float]) -> str:
    width = max((len(name) for name in totals), default=0)
    lines = [f"{name:<{width}}  {hours:7.2f} h" for name, hours in totals.items()]
    total = f"{'total':<{width}}  {sum(totals.values()):7.2f} h"
    return "\n".join([*lines, "-" * len(total), total])


@format_as("json")
def as_json(totals: dict[str, float]) -> str:
    return json.dumps({"totals": totals, "unit": "hours"}, indent=2, sort_keys=True)


def parse_hours(text: str) -> float:
    # Both '1:30' and '1,5' are in people's sheets.
    if ":" in text:
        hours, minutes = (int(part) for part in text.split(":", maxsplit=1))
        return hours + minutes / 60
    return float(text.replace(",", "."))


def read_entries(path: Path, *, delimiter: str = ";", encoding: str = "utf-8") -> Iterator[Entry]:
    with path.open(newline="", encoding=encoding) as file:
        for number, row in enumerate(csv.DictReader(file, delimiter=delimiter), start=2):
            try:
                yield Entry(
                    day=date.fromisoformat(row["day"]),
                    person=row["person"].strip().title(),
                    project=ALIASES.get(row["project"].lower(), row["project"]),
                    hours=parse_hours(row["hours"]),
                )
            except (KeyError, ValueError) as error:
                raise SystemExit(f"{path}:{number}: can't read {row!r} ({error})") from error


@timed("summing")
def totals_by(entries: list[Entry], column: str) -> dict[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for entry in entries:
        sums[getattr(entry, column)] += entry.hours
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def busy_weeks(entries: list[Entry], limit: float = 40.0) -> set[tuple[str, int]]:
    weeks = {(entry.person, entry.day.isocalendar()[1]) for entry in entries}
    return {
        (person, week)
        for person, week in weeks
        if sum(e.hours for e in entries if (e.person, e.day.isocalendar()[1]) == (person, week))
        > limit
    }


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="report", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--by", choices=("person", "project"), default="person")
    parser.add_argument("--format", choices=sorted(FORMATS), default="text", help="how to write")
    parser.add_argument(
        "--since",
        type=date.fromisoformat,
        default=date.today() - timedelta(days=30),
        help="leave out what's older (default: the last 30 days)",
    )
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    options = parse_arguments(argv)
    entries = [
        entry
        for path in options.files
        for entry in read_entries(path, delimiter="\t" if path.suffix == ".tsv" else ";")
        if entry.day >= options.since
    ]
    if not entries:
        print(f"nothing since {options.since:%d %B %Y}", file=sys.stderr)
        return 1
    print(FORMATS[options.format](totals_by(entries, options.by)))
    for person, week in sorted(busy_weeks(entries)):
        print(f"note: {person} worked more than 40 hours in week {week}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
