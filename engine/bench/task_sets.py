"""The sets that benchmarks read: files of one JSON object per line, plain or gzipped."""

import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from engine.errors import InputError
from engine.request import Buffer

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetItem:
    """A cursor in a real file, whose path shows the language. `id` names it in reports."""

    id: str
    path: str
    prefix: str
    suffix: str
    open_buffers: tuple[Buffer, ...] = ()  # most relevant first


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayItem(SetItem):
    """A real insertion or edit in a released package. `prefix + target + suffix` is the file."""

    kind: str  # completion, or edit: then the first open buffer is the old version
    package: str
    target: str


def load_replay_items(path: Path, count: int | None = None) -> list[ReplayItem]:
    """Read the first `count` items of a set, or all. Raises InputError for a bad file or line."""
    read = partial(msgspec.convert, type=ReplayItem)
    return read_rows(path, read, "item of a replay set")[:count]


def read_rows(path: Path, read: Callable[[dict[str, Any]], T], wanted: str) -> list[T]:
    """Return `read` of every line's object. Raises InputError if a line is no `wanted`."""
    rows = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            rows.append(read(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"{path}, line {number} is no {wanted} ({reason})") from error
    if not rows:
        raise InputError(f"{path} holds no {wanted}")
    return rows


def _lines(path: Path) -> list[str]:
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        return content.decode("utf-8").split("\n")
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
