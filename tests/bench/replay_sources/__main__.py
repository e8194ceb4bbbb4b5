"""`python -m tests.bench.replay_sources`: replay sets of six languages from released packages.

Sources come from the archives of npm's and Debian's packages in `sources.json`, each of one version
and sum. They are fetched by `npm` and `apt-get` as this machine has them set up, and nothing of
them is run. A set depends on list, count and seed alone.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from engine.errors import InputError
from tests.bench.replay_sources.archives import listed, read_release
from tests.bench.replay_sources.builder import ENDINGS, items


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.replay_sources")
    parser.add_argument("part", choices=("dev", "held"), help="held: judged on, never tuned on")
    parser.add_argument("folder", type=Path, help="gets a file LANGUAGE.jsonl for each language")
    parser.add_argument("--cache", type=Path, required=True, help="keeps the archives")
    parser.add_argument("--languages", nargs="+", choices=ENDINGS, default=list(ENDINGS))
    parser.add_argument("--count", type=int, default=100, help="items of a language")
    parser.add_argument("--seed", default="1")
    arguments = parser.parse_args(argv)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    try:
        for language in arguments.languages:
            print(_written(arguments, language))  # noqa: T201
    except InputError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _written(arguments: argparse.Namespace, language: str) -> str:
    archives = listed(arguments.part, language)
    endings = ENDINGS[language]
    releases = [read_release(archive, endings, arguments.cache) for archive in archives]
    found = list(islice(items(releases, f"{arguments.seed}/{language}"), arguments.count))
    file: Path = arguments.folder / f"{language}.jsonl"
    lines = (json.dumps(item, ensure_ascii=False, sort_keys=True) for item in found)
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return f"{file}: {len(found)} items of {len(releases)} packages"


if __name__ == "__main__":
    sys.exit(main())
