"""What the environment says: the one reader of environment variables, for values passed down."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from engine.errors import ConfigurationError

VARIABLES = ("FOREGRAM_CACHE", "FOREGRAM_DEBUG", "FOREGRAM_MODEL", "FOREGRAM_THREADS")


@dataclass(frozen=True, slots=True)
class Settings:
    """Choices that hold for every command until an option overrides them."""

    cache_folder: Path  # converted models, learned acceptance
    model: str | None = None  # None: the engine's default
    threads: int | None = None  # None: as many as torch finds
    debug: bool = False  # show the stack of an unexpected failure

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Read FOREGRAM_* variables; raises ConfigurationError on a wrong or unknown one."""
        values = os.environ if environ is None else environ
        for name in values:
            if name.startswith("FOREGRAM_") and name not in VARIABLES:
                known = ", ".join(VARIABLES)
                raise ConfigurationError(f"unknown environment variable {name}; known are {known}")
        return cls(
            cache_folder=_cache_folder(values),
            model=values.get("FOREGRAM_MODEL") or None,
            threads=_threads(values.get("FOREGRAM_THREADS", "")),
            debug=values.get("FOREGRAM_DEBUG", "") not in ("", "0"),
        )


def _cache_folder(values: Mapping[str, str]) -> Path:
    if values.get("FOREGRAM_CACHE"):
        return Path(values["FOREGRAM_CACHE"]).expanduser()
    if values.get("XDG_CACHE_HOME"):
        return Path(values["XDG_CACHE_HOME"]) / "foregram"
    home = Path(values.get("HOME") or Path.home())
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "foregram"


def _threads(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigurationError(f"FOREGRAM_THREADS is {text!r}, not a positive number")
    return int(text)
