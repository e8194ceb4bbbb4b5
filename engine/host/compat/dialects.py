"""The drop-in APIs by name, and those that a host speaks."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import ConfigurationError
from engine.host.compat.dialect import Dialect
from engine.host.compat.llama_cpp import LlamaCpp
from engine.host.compat.mistral import Mistral
from engine.host.compat.openai import OpenAI
from engine.host.compat.routes import HEALTH
from engine.host.compat.tabby import Tabby

NONE = "none"
_ALL: tuple[Dialect, ...] = (OpenAI(), Mistral(), LlamaCpp(), Tabby())
NAMES = tuple(one.name for one in _ALL)
DEFAULT = "openai"


@dataclass(frozen=True, slots=True)
class Spoken:
    """The drop-in APIs that a host speaks."""

    dialects: tuple[Dialect, ...] = ()

    @classmethod
    def named(cls, names: str) -> "Spoken":
        """Read names between commas, or `none`. Raises ConfigurationError."""
        wanted = [] if names == NONE else [name.strip() for name in names.split(",")]
        unknown = [name for name in wanted if name not in NAMES]
        if unknown:
            raise ConfigurationError(
                f"there is no API {unknown[0]!r}: name some of {', '.join(NAMES)}, or {NONE}"
            )
        return cls(tuple(one for one in _ALL if one.name in wanted))

    def at(self, path: str) -> Dialect | None:
        """Whose errors a request to this path expects; None: it is of the native protocol."""
        if path == HEALTH and self.dialects:
            return self.dialects[0]
        return next((one for one in self.dialects if _has(one, path)), None)


def _has(dialect: Dialect, path: str) -> bool:
    places: Sequence[str] = (*dialect.paths, *dialect.other_paths)
    return any(path == place or path.startswith(f"{place}/") for place in places)
