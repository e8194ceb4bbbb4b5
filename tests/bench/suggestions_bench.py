"""`python -m tests.bench suggestions`: the suggestions that an editor shows for a scripted model.

Two commits that print the same lines suggest the same: prompts, rules that end and trim a text, and
positions. It needs no model, and a busy machine changes nothing.
"""

import argparse
import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table

from engine.errors import ConfigurationError
from lsp_server.cli import command_parser
from lsp_server.cli.terminal import print_figures, tracked
from lsp_server.language_names import language_of_file
from lsp_server.settings import Settings
from tests.bench.scripted_model import ScriptedModel, scripted_engine
from tests.support.editor import Editor, editor
from tests.support.running_host import TOKEN, running_host

_MOST_BYTES = 60_000  # bytes of a file
_IN_FILE = 4  # cursors in a file
_MOST_TOLD = 20  # different places that are printed
_READY_S = 60.0
_POLL_S = 0.02
_SETTINGS = {  # nothing that depends on time or closed files
    "speculate": False,
    "repository": ["off"],
    "time_limit_ms": 3_600_000,
}


@dataclass(frozen=True, slots=True)
class ScriptedPlace:
    file: str
    language_id: str
    kind: str
    prefix: str
    suffix: str
    written: str


def add_options(parser: argparse.ArgumentParser) -> None:
    options = {
        "paths PATH ...": "files and folders",
        "--count N =300": "use N cursor positions; 300 by default",
        "--seed SEED =1": "choose the positions by this seed; 1 by default",
        "--out FILE": "keep a JSON line for each place",
        "--against FILE": "compare with such a file",
    }
    command_parser.add_options(parser, options)
    parser.set_defaults(json=False)


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    del settings  # the benchmark's editor has its own
    for name in [one for one in os.environ if one.startswith("FOREGRAM_")]:
        del os.environ[name]
    places = scripted_places(arguments.paths, arguments.count, arguments.seed)
    if not places:
        raise ConfigurationError("no file among these is in a language that has a name")
    lines = asyncio.run(_record(places))
    if arguments.out is not None:
        arguments.out.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    before = arguments.against.read_text().splitlines() if arguments.against else ()
    differing = _differing(lines, [json.loads(line) for line in before])
    table = _table(lines, differing, len(before))
    table.caption = "\n".join(differing[:_MOST_TOLD])
    print_figures(arguments, {}, table)


def scripted_places(paths: Iterable[Path], count: int, seed: int) -> list[ScriptedPlace]:
    """Return up to `count` cursors in the files of `paths`, each with a text for the model.

    Files are known by name and content alone, so folders may move.
    """
    chance = Random(seed)  # noqa: S311 - it chooses places, not secrets
    files = sorted(
        set(_files(paths)), key=lambda file: (file.name, sha256(file.read_bytes()).digest())
    )
    chance.shuffle(files)
    places = (place for file in files for place in _places_in(file, chance))
    return list(islice(places, count))


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        for file in path.rglob("*") if path.is_dir() else [path]:
            if language_of_file(file.name) and file.is_file() and file.stat().st_size < _MOST_BYTES:
                yield file


def _places_in(file: Path, chance: Random) -> Iterator[ScriptedPlace]:
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError:
        return
    rows = text.split("\n")
    filled = [row for row, line in enumerate(rows) if 3 <= len(line.strip()) <= 200]
    if len(filled) < 20 or "\r" in text:
        return
    for _ in range(_IN_FILE):
        row = chance.choice(filled)
        yield _place(file, rows, row, chance)


def _place(file: Path, rows: Sequence[str], row: int, chance: Random) -> ScriptedPlace:
    """Cut out text at a row; the model writes it, may go on, or writes worse text."""
    line = rows[row]
    indent = len(line) - len(line.lstrip())
    column = chance.choice([indent, len(line), chance.randint(indent, len(line))])
    num_cut = chance.choice([1, 1, 2, 4, 8])
    prefix = "\n".join([*rows[:row], line[:column]])
    if num_cut == 1 and chance.random() < 0.4:  # text stays behind the cursor in its line
        end = chance.randint(column, len(line))
        cut, suffix = line[column:end], "\n".join([line[end:], *rows[row + 1 :]])
    else:
        cut = "\n".join([line[column:], *rows[row + 1 : row + num_cut]])
        suffix = "\n".join(["", *rows[row + num_cut :]])
    kind = chance.choice(["exact", "runs on", "strays", "other"])
    elsewhere = chance.randrange(len(rows))
    other = "\n".join(rows[elsewhere : elsewhere + 6])
    written = {
        "exact": cut,
        "runs on": cut + suffix[:300],
        "strays": f"{cut}\n{other}",
        "other": other.strip(),
    }[kind]
    language_id = language_of_file(file.name)
    return ScriptedPlace(file.name, language_id, kind, prefix, suffix, written)


async def _record(places: Sequence[ScriptedPlace]) -> list[dict[str, Any]]:
    with TemporaryDirectory(prefix="fg-") as name:
        folder = Path(name)
        engine, model = scripted_engine(folder / "learned")
        async with (
            running_host(None, engine, token=TOKEN) as host,
            _editor(folder, host.url) as shown,
        ):
            shown.uri = (folder / "shop" / "first.py").as_uri()
            await _until_ready(shown)
            return [
                await _asked(shown, model, place, folder / "shop" / f"{number}-{place.file}")
                for number, place in enumerate(tracked(places, "places"))
            ]


@asynccontextmanager
async def _editor(folder: Path, url: str) -> AsyncIterator[Editor]:
    (folder / "run").mkdir(0o700)
    (folder / "shop").mkdir()
    own = {
        "FOREGRAM_HOST_URL": url,
        "FOREGRAM_TOKEN": TOKEN,
        "FOREGRAM_RUNTIME": str(folder / "run"),
        "FOREGRAM_CACHE": str(folder / "cache"),
        "FOREGRAM_CONFIG": str(folder / "none.toml"),
    }
    root = (folder / "shop").as_uri()
    async with editor(root=root, options={"foregram": _SETTINGS}, environ=own) as shown:
        yield shown


async def _until_ready(shown: Editor) -> None:
    shown.open("first = 1\nfir|")
    async with asyncio.timeout(_READY_S):
        while not (await shown.run("foregram.cost")):
            await shown.items()
            await asyncio.sleep(_POLL_S)
    shown.close()


async def _asked(
    shown: Editor, model: ScriptedModel, place: ScriptedPlace, file: Path
) -> dict[str, Any]:
    model.before, model.after = place.prefix.encode(), place.written.encode()
    model.prompt = b""
    shown.uri = file.as_uri()
    shown.open_around(place.prefix, place.suffix, place.language_id)
    items = await shown.items()
    reason = None if items else (await shown.reasons())[-1]
    shown.close()
    row, column = shown.position.line, shown.position.character
    return {
        "place": f"{file.name}:{row + 1}:{column + 1} {place.kind}",
        "shown": [{"text": one.insert_text, "range": _range(one, row)} for one in items],
        "reason": reason,
        "prompt": sha256(model.prompt).hexdigest(),
    }


def _range(item: Any, row: int) -> list[int] | None:
    """Return the range that an item replaces, in rows from the cursor's."""
    there = item.range
    if there is None:
        return None
    start, end = there.start, there.end
    return [start.line - row, start.character, end.line - row, end.character]


def _differing(lines: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]) -> list[str]:
    if not before:
        return []
    now = {line["place"]: line for line in lines}
    then = {line["place"]: line for line in before}
    return [
        f"{place}:\n  before {then.get(place)}\n  now    {now.get(place)}"
        for place in sorted(then.keys() | now.keys())
        if then.get(place) != now.get(place)
    ]


def _table(lines: Sequence[dict[str, Any]], differing: Sequence[str], num_before: int) -> Table:
    table = Table("places", "shown", "of several lines", "differ from the recording")
    several = sum("\n" in one["text"] for line in lines for one in line["shown"])
    shown = sum(bool(line["shown"]) for line in lines)
    told = f"{len(differing)} of {num_before}" if num_before else ""
    table.add_row(str(len(lines)), str(shown), str(several), told)
    return table
