"""Adds settings to the user's `foregram.toml`, after asking. What stands there stays."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from engine.atomic_write import atomic_write
from engine.errors import ConfigurationError
from lsp_server.cli.messages import agreed, note, visible
from lsp_server.setting_layers import Layer


def toml_line(name: str, value: object) -> str:
    """Return a setting as a line of TOML; strings, numbers, booleans and lists are as in JSON."""
    return f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f") + "\n"


def add_settings(file: Layer, values: Mapping[str, object], *, is_agreed: bool) -> bool:
    """Write the values that `file` lacks; return whether nobody said no. Raises ForegramError."""
    there = {_spelt(key): key for key in file.values}
    for name in values:
        if _spelt(name) in there:
            sys.stdout.write(
                visible(f"{file.source} says what {there[_spelt(name)]} is; it stays\n")
            )
    lines = [toml_line(*one) for one in values.items() if _spelt(one[0]) not in there]
    if not lines:
        sys.stdout.write(visible(f"nothing is to be written into {file.source}\n"))
        return True
    sys.stdout.write(visible(f"to be written into {file.source}:\n  {'  '.join(lines)}"))
    if not is_agreed and not sys.stdin.isatty():
        note("nothing was written: `--yes` does it without asking")
        return True
    if not is_agreed and not agreed("Write this?"):
        return False
    _write(Path(file.source), "".join(lines))
    return True


def _write(path: Path, lines: str) -> None:
    try:
        before = path.read_bytes() if path.exists() else b""
        with atomic_write(path.resolve()) as file:  # a link of somebody's dotfiles stays one
            file.write(lines.encode() + before)  # first: what follows a table belongs to it
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error


def _spelt(name: str) -> str:
    """Return a name in the one spelling of snake_case and camelCase."""
    return name.replace("_", "").lower()
