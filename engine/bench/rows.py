"""Reads files of one JSON object per line, plain or gzipped."""

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from engine.errors import InputError

T = TypeVar("T")


def read_rows(path: Path, read: Callable[[dict[str, Any]], T], wanted: str) -> list[T]:
    """Return `read` of every line's object; `wanted` names in messages what a line should be.

    Raises InputError naming the line where the file is missing, garbled, empty or of another form.
    """
    rows = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            rows.append(read(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
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
