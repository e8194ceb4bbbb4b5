"""The user's `foregram.toml` with other values: comments and all other lines stay."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from engine.errors import ConfigurationError
from lsp_server.cli.changed_file import ChangedFile


def write_settings(path: Path, values: Mapping[str, str | int]) -> None:
    """Set top-level values in a file, or make it. Raises ForegramError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        before = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error
    after = with_values(before.decode("utf-8"), values).encode()
    ChangedFile(path, before, after).write()


def with_values(text: str, values: Mapping[str, str | int]) -> str:
    """Return TOML with these values. Raises ConfigurationError where lines do not show its keys."""
    begin = re.search(r"^[ \t]*\[", text, re.MULTILINE)
    head, tables = (text[: begin.start()], text[begin.start() :]) if begin else (text, "")
    expected = tomllib.loads(text)
    for name, value in values.items():
        camel = re.sub("_(.)", lambda match: match[1].upper(), name)
        expected.pop(camel, None)
        expected[name] = value
        line = f"{name} = {json.dumps(value)}"
        known = re.compile(rf"^[ \t]*(?:{name}|{camel})[ \t]*=[^#\n]*?(?=[ \t]*(?:#|$))", re.M)
        head, is_known = known.subn(line, head, count=1)
        if not is_known:
            head = f"{head.rstrip()}\n{line}\n".lstrip() + ("\n" if tables else "")
    if _loaded(head + tables) != expected:
        wanted = ", ".join(f"{name} = {json.dumps(value)}" for name, value in values.items())
        raise ConfigurationError(f"the settings file has an unusual form: write {wanted} there")
    return head + tables


def _loaded(text: str) -> object:
    try:
        return tomllib.loads(text)
    except ValueError:  # one key twice
        return None
