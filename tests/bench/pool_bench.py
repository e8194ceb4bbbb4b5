"""Size and speed of the n-gram pool, on the source of the standard library, without a model.

A byte-pair vocabulary is trained on a part of it. The pool is filled with its lines in random
order, asked for what follows pieces of code in their true order, and then a file is typed in.
"""

import argparse
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.table import Table
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from engine.bench.figures import percentile
from engine.drafting.edited_file import EditedFile
from engine.drafting.pool import NgramPool
from engine.drafting.pool.chains import CONTEXT
from engine.drafting.tree import Source
from engine.request import CompletionRequest
from lsp_server.cli.command_parser import add_json, positive
from lsp_server.cli.terminal import print_figures
from lsp_server.settings import Settings

POOL_TOKENS = 10_000_000
TREE_NODES = 63  # with the current token's row, 64 rows
DRAFTS, KEYS = 4000, 400
EDITED_LINES = 5000
_VOCABULARY = 152_064  # Qwen's: the pool keeps an entry for each token that exists
_TRAINED_VOCABULARY = 8192
_TRAINING_CHARS, _TEXT_CHARS = 1_000_000, 6_000_000
_DOCUMENT_LINES = 400
_SLACK = 1 << 16  # slots for separators and the file that is typed in
# How Qwen's tokenizer splits text before it merges.
_SPLIT = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the command line takes."""
    parser.add_argument(
        "--tokens",
        metavar="N",
        type=positive,
        default=POOL_TOKENS,
        help="fill the pool with N tokens; 10,000,000 by default",
    )
    add_json(parser)


def bench(arguments: argparse.Namespace, _settings: Settings) -> None:
    """Measure the n-gram pool alone."""
    figures = measure_pool(arguments.tokens)
    print_figures(arguments, asdict(figures), figures.table())


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """What a pool of `tokens` costs. A key is typed into a file of 5,000 lines."""

    tokens: int
    bytes_per_token: float
    build_tokens_per_second: float
    tree_us_p50: float  # one tree of 64 rows, the call from Python included
    tree_us_p99: float
    key_ms_p50: float  # with re-tokenising
    key_ms_p99: float

    def table(self) -> Table:
        """A table for people."""
        table = Table("figure", "value", title=f"n-gram pool of {self.tokens:,} tokens")
        table.add_row("bytes per token", f"{self.bytes_per_token:.1f}")
        table.add_row("tokens added per second", f"{self.build_tokens_per_second:,.0f}")
        table.add_row(
            "tree of 64 rows, us p50 / p99", f"{self.tree_us_p50:.1f} / {self.tree_us_p99:.1f}"
        )
        table.add_row(
            "key in 5,000 lines, ms p50 / p99", f"{self.key_ms_p50:.2f} / {self.key_ms_p99:.2f}"
        )
        return table


def measure_pool(num_tokens: int = POOL_TOKENS) -> PoolFigures:
    """Fill a pool with at least `num_tokens` and time it; deterministic but for the times."""
    rng = np.random.default_rng(0)
    text = _library_text()
    encode = _encoder(text[:_TRAINING_CHARS])
    lines = text.splitlines(keepends=True)
    ids = [np.array(encode(line), np.int32) for line in lines]
    pool = NgramPool(num_tokens + num_tokens // 16 + _SLACK, _VOCABULARY)
    pool.add(ids[0], Source.OPEN_BUFFER)
    pool.draft(ids[0], TREE_NODES)  # compiled by now
    tokens, build_s = _fill(pool, ids, num_tokens, rng)
    size = pool.memory_bytes
    trees = _time(_drafts(pool, np.concatenate(ids), rng))
    keys = _time(_keys(pool, encode, lines[:EDITED_LINES]))
    return PoolFigures(
        tokens=tokens,
        bytes_per_token=size / tokens,
        build_tokens_per_second=tokens / build_s,
        tree_us_p50=1e6 * percentile(trees, 50),
        tree_us_p99=1e6 * percentile(trees, 99),
        key_ms_p50=1e3 * percentile(keys, 50),
        key_ms_p99=1e3 * percentile(keys, 99),
    )


def _library_text() -> str:
    folder = Path(sysconfig.get_path("stdlib"))
    parts, left = [], _TEXT_CHARS
    for path in sorted(folder.glob("*.py")) + sorted(folder.glob("*/*.py")):
        parts.append(path.read_text("utf-8", "replace")[:left])
        left -= len(parts[-1])
    return "".join(parts)


def _encoder(text: str) -> Callable[[str], Sequence[int]]:
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(_SPLIT), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    trainer = trainers.BpeTrainer(
        vocab_size=_TRAINED_VOCABULARY,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    return lambda piece: tokenizer.encode(piece).ids


def _fill(
    pool: NgramPool, lines: Sequence[np.ndarray], num_tokens: int, rng: np.random.Generator
) -> tuple[int, float]:
    """Add documents of random lines; return the number of tokens and the seconds it took."""
    tokens, seconds = 0, 0.0
    while tokens < num_tokens:
        chosen = rng.integers(0, len(lines), _DOCUMENT_LINES)
        content = np.concatenate([lines[line] for line in chosen])[: num_tokens - tokens]
        seconds += sum(_time([partial(pool.add, content, Source.OPEN_BUFFER)]))
        tokens += content.size
    return tokens, seconds


def _drafts(
    pool: NgramPool, text: np.ndarray, rng: np.random.Generator
) -> list[Callable[[], object]]:
    """Trees for contexts of the text in its true order."""
    ends = rng.integers(CONTEXT, text.size, DRAFTS)
    contexts = [text[end - CONTEXT : end] for end in ends]
    return [partial(pool.draft, context, TREE_NODES) for context in contexts]


def _keys(
    pool: NgramPool, encode: Callable[[str], Sequence[int]], lines: Sequence[str]
) -> list[Callable[[], object]]:
    """Requests of which each has one more key typed in the middle of a text."""
    file, middle = EditedFile(pool, encode), len(lines) // 2
    before, typed, behind = "".join(lines[:middle]), "".join(lines), "".join(lines[middle:])

    def request(num_keys: int) -> None:
        with file.completed(CompletionRequest(before + typed[:num_keys], behind), unsettled=""):
            pass

    request(0)
    return [partial(request, num_keys) for num_keys in range(1, KEYS + 1)]


def _time(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Seconds of each call."""
    seconds = []
    for call in calls:
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return seconds
